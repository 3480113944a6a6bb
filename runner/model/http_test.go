package model

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// env is an environment for Getenv.
type env map[string]string

func (e env) get(name string) string { return e[name] }

func TestProxyIsChosenLikeEverywhere(t *testing.T) {
	for _, c := range []struct {
		name, proxy string
		env         env
		url, want   string
	}{
		{"none", "", nil, "https://a.example/v1", ""},
		{"https", "", env{"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://q:2"}, "https://a.example/v1", "http://p:1"},
		{"http", "", env{"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://q:2"}, "http://a.example/v1", "http://q:2"},
		{"lower case", "", env{"https_proxy": "http://p:1"}, "https://a.example/v1", "http://p:1"},
		{"no scheme", "", env{"https_proxy": "p:1"}, "https://a.example/v1", "http://p:1"},
		{"setting wins", "socks5://s:3", env{"HTTPS_PROXY": "http://p:1"}, "https://a.example/v1", "socks5://s:3"},
		{"setting, plain http", "http://s:3", nil, "http://a.example/v1", "http://s:3"},
		{"NO_PROXY", "", env{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "b.example,.a.example"}, "https://x.a.example/v1", ""},
		{"NO_PROXY with the setting", "http://s:3", env{"no_proxy": "a.example"}, "https://a.example/v1", ""},
		{"NO_PROXY with a port", "", env{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example:8443"}, "https://a.example:8443/v1", ""},
		{"NO_PROXY with another port", "", env{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example:8443"}, "https://a.example/v1", "http://p:1"},
		{"NO_PROXY with a network", "", env{"HTTP_PROXY": "http://p:1", "NO_PROXY": "10.1.0.0/16"}, "http://10.1.2.3/v1", ""},
		{"outside of the network", "", env{"HTTP_PROXY": "http://p:1", "NO_PROXY": "10.1.0.0/16"}, "http://10.2.2.3/v1", "http://p:1"},
		{"NO_PROXY for all", "", env{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://a.example/v1", ""},
		{"this machine by name", "", env{"HTTP_PROXY": "http://p:1"}, "http://localhost:11434/v1", ""},
		{"this machine by number", "http://s:3", nil, "http://127.0.0.1:11434/v1", ""},
		{"a stranger's header in CGI", "", env{"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, "http://a.example/v1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			choose, err := proxyFor(clientOptions{proxy: c.proxy, getenv: c.env.get})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, c.url, nil)
			u, err := choose(r)
			got := ""
			if u != nil {
				got = u.String()
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestBadProxyIsRefusedWithoutItsPassword(t *testing.T) {
	for _, proxy := range []string{"http://user:hidden@[bad", "ftp://user:hidden@host:1", "http://user:hidden@host:port", "http://", "://user:hidden@x", "http://user:hid den@host"} {
		for name, o := range map[string]clientOptions{
			"proxy":       {proxy: proxy, getenv: env{}.get},
			"HTTPS_PROXY": {getenv: env{"HTTPS_PROXY": proxy}.get},
		} {
			_, err := newClient(o)
			if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s %q: got %v", name, proxy, err)
			}
		}
	}
}

// tlsServer is a server with a private certificate authority, and the file of
// its certificate.
func tlsServer(t *testing.T) (s *httptest.Server, caFile string) {
	t.Helper()
	s = httptest.NewUnstartedServer(stream(chunks(`{"delta":{"content":"hi"}}`, finishStop) + done))
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(caFile, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return s, caFile
}

// openAt opens a chat model at a base URL and asks it once.
func openAt(t *testing.T, p ProviderConfig, e env) played {
	t.Helper()
	p.API = "chat"
	m, err := Open("acme/m", Config{Providers: map[string]ProviderConfig{"acme": p}, Getenv: e.get})
	if err != nil {
		t.Fatal(err)
	}
	return play(t, t.Context(), m.Provider, &Request{Model: m.Model, Items: []Item{user("hi")}})
}

func TestPrivateCertificateAuthority(t *testing.T) {
	s, caFile := tlsServer(t)
	for name, c := range map[string]struct {
		p ProviderConfig
		e env
	}{
		"ca_file":       {ProviderConfig{BaseURL: s.URL, CAFile: caFile}, nil},
		"SSL_CERT_FILE": {ProviderConfig{BaseURL: s.URL}, env{"SSL_CERT_FILE": caFile}},
		"both":          {ProviderConfig{BaseURL: s.URL, CAFile: caFile}, env{"SSL_CERT_FILE": "/does/not/exist"}},
	} {
		if r := openAt(t, c.p, c.e); r.err != nil || r.text != "hi" {
			t.Errorf("%s: %+v", name, r.err)
		}
	}
}

func TestCertificateErrorsNameHostIssuerAndSetting(t *testing.T) {
	s, caFile := tlsServer(t)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, c := range []struct {
		name      string
		p         ProviderConfig
		says, fix []string
	}{
		{"unknown authority", ProviderConfig{BaseURL: s.URL}, []string{s.Listener.Addr().String(), "Acme Co", "issuer is not trusted"}, []string{"ca_file", "acme"}},
		{"wrong name", ProviderConfig{BaseURL: "https://localhost:" + port, CAFile: caFile}, []string{"localhost:" + port, "another name"}, []string{"base_url"}},
		{"no TLS", ProviderConfig{BaseURL: strings.Replace(plain.URL, "http:", "https:", 1)}, []string{"does not speak TLS"}, []string{"http://"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := openAt(t, c.p, nil)
			if r.err == nil || r.err.Kind != ErrConnect || r.err.Retryable {
				t.Fatalf("got %+v", r.err)
			}
			for _, want := range c.says {
				if !strings.Contains(r.err.Message, want) {
					t.Errorf("message %q lacks %q", r.err.Message, want)
				}
			}
			for _, want := range c.fix {
				if !strings.Contains(r.err.Fix, want) {
					t.Errorf("fix %q lacks %q", r.err.Fix, want)
				}
			}
		})
	}
}

// connectProxy is a proxy with a password that connects everything to one
// address.
func connectProxy(t *testing.T, target string) (address string, targets *[]string) {
	t.Helper()
	var mu sync.Mutex
	targets = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:open-sesame-99"))
		if r.Header.Get("Proxy-Authorization") != want {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		mu.Lock()
		*targets = append(*targets, r.Host)
		mu.Unlock()
		up, err := net.Dial("tcp", target)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer up.Close()
		down, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer down.Close()
		if _, err := io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = io.Copy(up, down) // ends when the client goes
			_ = up.Close()
		})
		_, _ = io.Copy(down, up) // ends when the server goes
		_ = down.Close()
		wg.Wait()
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), targets
}

func TestPrivateAuthorityBehindAProxyWithAPassword(t *testing.T) {
	s, caFile := tlsServer(t)
	proxy, targets := connectProxy(t, s.Listener.Addr().String())
	base := ProviderConfig{BaseURL: "https://example.com/v1", CAFile: caFile}
	with := base
	with.Proxy = "http://user:open-sesame-99@" + proxy
	for name, c := range map[string]struct {
		p ProviderConfig
		e env
	}{
		"setting":    {with, nil},
		"upper case": {base, env{"HTTPS_PROXY": with.Proxy}},
		"lower case": {base, env{"https_proxy": with.Proxy}},
	} {
		if r := openAt(t, c.p, c.e); r.err != nil || r.text != "hi" {
			t.Errorf("%s: %+v", name, r.err)
		}
	}
	if len(*targets) != 3 || (*targets)[0] != "example.com:443" {
		t.Errorf("the proxy saw %v", *targets)
	}
	wrong := base
	wrong.Proxy = "http://user:wrong-password-1@" + proxy
	r := openAt(t, wrong, nil)
	if r.err == nil || r.err.Kind != ErrConnect || r.err.Retryable || r.err.Status != 407 ||
		!strings.Contains(r.err.Message, proxy) || !strings.Contains(r.err.Fix, "proxy of the provider acme") {
		t.Errorf("got %+v", r.err)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	gone := base
	gone.Proxy = strings.Replace(closed.URL, "http://", "http://user:wrong-password-1@", 1)
	lost := openAt(t, gone, nil)
	if lost.err == nil || lost.err.Kind != ErrConnect || !lost.err.Retryable || !strings.Contains(lost.err.Message, "the proxy cannot be reached") {
		t.Errorf("got %+v", lost.err)
	}
	for _, e := range []*Error{r.err, lost.err} {
		for err := error(e); err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error()+e.Fix, "wrong-password-1") {
				t.Errorf("the password is in %q", err)
			}
		}
	}
}

func TestUnreachableServers(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	hangup := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangup.Close()
	for _, w := range wires {
		for url, says := range map[string]string{
			closed.URL:                 "nothing listens at " + strings.TrimPrefix(closed.URL, "http://"),
			hangup.URL:                 "closed the connection before it answered",
			"http://no-such.invalid/v": "no-such.invalid cannot be found",
		} {
			m, err := Open("acme/m", Config{Providers: map[string]ProviderConfig{"acme": {API: w.name, BaseURL: url}}})
			if err != nil {
				t.Fatal(err)
			}
			r := play(t, t.Context(), m.Provider, &Request{Model: "m", Items: []Item{user("hi")}})
			if r.err == nil || r.err.Kind != ErrConnect || !r.err.Retryable || len(r.deltas) != 0 {
				t.Errorf("%s %s: %+v", w.name, url, r.err)
				continue
			}
			// A machine without any name server says so in its own words.
			if !strings.Contains(r.err.Message, says) && !strings.Contains(url, "invalid") {
				t.Errorf("%s %s: message %q", w.name, url, r.err.Message)
			}
		}
	}
}

func TestKeysDoNotFollowARedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var stolen []string
		thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stolen = append(stolen, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.Header.Get("X-Secret"))
		}))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+"/v1?sig=hidden", status)
		}))
		for _, w := range wires {
			m, err := Open("acme/m", Config{Getenv: env{"K": keyOfTests}.get, Providers: map[string]ProviderConfig{
				"acme": {API: w.name, BaseURL: server.URL, APIKeyEnv: "K", Headers: map[string]string{"X-Secret": "canary-header"}}}})
			if err != nil {
				t.Fatal(err)
			}
			r := play(t, t.Context(), m.Provider, &Request{Model: "m", Items: []Item{user("hi")}})
			if r.err == nil || r.err.Kind != ErrRequest || r.err.Retryable || !strings.Contains(r.err.Message, "redirects to "+thief.URL) || !strings.Contains(r.err.Fix, "base_url") {
				t.Errorf("%d %s: got %+v", status, w.name, r.err)
			}
			if r.err != nil && strings.Contains(r.err.Error(), "hidden") {
				t.Errorf("%d %s: the query is shown: %v", status, w.name, r.err)
			}
		}
		server.Close()
		thief.Close()
		if len(stolen) > 0 {
			t.Errorf("%d: the other server got %q", status, stolen)
		}
	}
}

func TestRedirectWithinTheServerIsFollowed(t *testing.T) {
	var body, key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/new/") {
			http.Redirect(w, r, "/new"+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		body, key = string(data), r.Header.Get("Authorization")
		stream(chunks(`{"delta":{"content":"hi"}}`, finishStop)+done)(w, r)
	}))
	defer server.Close()
	r := openAt(t, ProviderConfig{BaseURL: server.URL + "/", APIKeyEnv: "K"}, env{"K": keyOfTests})
	if r.err != nil || r.text != "hi" || key != "Bearer "+keyOfTests || !strings.Contains(body, `"hi"`) {
		t.Errorf("got %+v, key %q, body %q", r.err, key, body)
	}
}

func TestUserAgentAndHeadersAreSent(t *testing.T) {
	for _, w := range wires {
		var got http.Header
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { got = r.Header }))
		m, err := Open("acme/m", Config{UserAgent: "drover/9", Getenv: env{"K": keyOfTests}.get, Providers: map[string]ProviderConfig{
			"acme": {API: w.name, BaseURL: server.URL, APIKeyEnv: "K", Headers: map[string]string{"X-Team": "a"}}}})
		if err != nil {
			t.Fatal(err)
		}
		play(t, t.Context(), m.Provider, &Request{Model: "m", Items: []Item{user("hi")}})
		server.Close()
		if got.Get("User-Agent") != "drover/9" || got.Get("X-Team") != "a" || got.Get("Idempotency-Key") != "" {
			t.Errorf("%s: %v", w.name, got)
		}
		var b bytes.Buffer
		if err := got.Write(&b); err != nil || !strings.Contains(b.String(), keyOfTests) {
			t.Errorf("%s: the key is not sent: %v", w.name, err)
		}
	}
}
