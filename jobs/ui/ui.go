// Package ui serves River's own web UI for the database of a job, to the one
// person who has the URL.
//
// The UI can show, cancel and retry entries of the queue; it works on no row
// itself. The handler lets nobody in without the token, which comes once in the
// URL and is a cookie from then on, and answers only requests that were sent to
// the address it listens at: another site must not be able to talk to it by way
// of the person's browser.
package ui

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"

	"github.com/riverqueue/river"
	"riverqueue.com/riverui"

	"drover/jobs/store"
)

// cookieName is the cookie that holds the token.
const cookieName = "drover_ui"

// Handler returns the UI for the database. host is the address it is reached at,
// host:port; token lets a request in. What the UI does in the background ends
// with ctx.
func Handler(ctx context.Context, s *store.Store, host, token string) (http.Handler, error) {
	// A client without queues inserts and looks, and takes part in nothing.
	client, err := river.NewClient(s.Driver(), &river.Config{Logger: store.Quiet()})
	if err != nil {
		return nil, fmt.Errorf("connect the web UI to the queue: %w", err)
	}
	inner, err := riverui.NewHandler(&riverui.HandlerOpts{Endpoints: riverui.NewEndpoints[*sql.Tx](client, nil), Logger: store.Quiet()})
	if err != nil {
		return nil, fmt.Errorf("make the web UI: %w", err)
	}
	if err := inner.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the web UI: %w", err)
	}
	return guard(inner, host, token), nil
}

// guard lets only the holder of the token in.
func guard(inner http.Handler, host, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src 'self' 'unsafe-inline'; frame-ancestors 'none'; form-action 'self'; base-uri 'self'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if r.Host != host {
			http.Error(w, "this is not the address of the UI", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+host {
			http.Error(w, "another site may not ask", http.StatusForbidden)
			return
		}
		if given := r.URL.Query().Get("token"); given != "" {
			if !same(given, token) {
				http.Error(w, "the token is wrong", http.StatusForbidden)
				return
			}
			http.SetCookie(w, &http.Cookie{Name: cookieName, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			rest := r.URL.Query()
			rest.Del("token")
			to := url.URL{Path: r.URL.Path, RawQuery: rest.Encode()}
			http.Redirect(w, r, to.String(), http.StatusSeeOther)
			return
		}
		cookie, err := r.Cookie(cookieName)
		if err != nil || !same(cookie.Value, token) {
			http.Error(w, "open the URL that drover has printed; its token is missing here", http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
