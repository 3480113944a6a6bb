package ui

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drover/jobs/store"
)

const host, token = "127.0.0.1:8080", "5ecret"

func ask(t *testing.T, h http.Handler, url string, change func(*http.Request)) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Host = host
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func withCookie(value string) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: value}) }
}

func TestNobodyComesInWithoutTheToken(t *testing.T) {
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") })
	h := guard(inside, host, token)
	for _, c := range []struct {
		name, url string
		change    func(*http.Request)
		status    int
	}{
		{"nothing", "/", nil, 403},
		{"wrong token", "/?token=guess", nil, 403},
		{"wrong cookie", "/", withCookie("guess"), 403},
		{"empty cookie", "/", withCookie(""), 403},
		{"token", "/?token=" + token, nil, 303},
		{"cookie", "/jobs", withCookie(token), 200},
		{"another name for this machine", "/", func(r *http.Request) { withCookie(token)(r); r.Host = "evil.example:8080" }, 403},
		{"token at another name", "/?token=" + token, func(r *http.Request) { r.Host = "localhost:8080" }, 403},
		{"another site", "/api/jobs", func(r *http.Request) { withCookie(token)(r); r.Header.Set("Origin", "http://evil.example") }, 403},
		{"the site itself", "/api/jobs", func(r *http.Request) { withCookie(token)(r); r.Header.Set("Origin", "http://"+host) }, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, h, c.url, c.change)
			if got.StatusCode != c.status {
				t.Errorf("status %d, want %d", got.StatusCode, c.status)
			}
			body, err := io.ReadAll(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			if c.status != 200 && strings.Contains(string(body), "inside") {
				t.Error("the UI answered")
			}
			if got.Header.Get("X-Frame-Options") != "DENY" || got.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("headers %v", got.Header)
			}
		})
	}
}

func TestTokenLeavesTheURL(t *testing.T) {
	got := ask(t, guard(http.NotFoundHandler(), host, token), "/jobs?token="+token, nil)
	if to := got.Header.Get("Location"); to != "/jobs" {
		t.Errorf("redirect to %q", to)
	}
	cookies := got.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Value != token {
		t.Errorf("cookies %v", cookies)
	}
}

func TestRowsOfAJobAreInTheAnswers(t *testing.T) {
	ctx := context.Background()
	s, err := store.OpenFolder(ctx, t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO river_job (args, kind, max_attempts, queue) VALUES ('{"job":"j","item":"row-77"}', 'drover_row', 3, 'drover-j')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	h, err := Handler(running, s, host, token)
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{"/api/jobs?state=available&limit=10": "row-77", "/": "<html"} {
		got := ask(t, h, url, withCookie(token))
		body, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s", url, got.StatusCode, body[:min(len(body), 300)])
		}
		if strings.HasPrefix(url, "/api") && !json.Valid(body) {
			t.Errorf("%s: no JSON", url)
		}
	}
}
