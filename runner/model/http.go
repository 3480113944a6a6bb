package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Every provider gets its HTTP client here, so that proxies, certificates and
// redirects behave alike on all of them.

// endpoint is where and how a network provider sends its requests.
type endpoint struct {
	// Name is the provider's name, such as "openai".
	Name string
	// BaseURL has no slash at its end.
	BaseURL string
	// Key is the API key, "" for none; KeyEnv names the variable that holds it.
	Key, KeyEnv string
	// Headers are the user's own; they win over the provider's.
	Headers map[string]string
	// Client has no timeout of its own: the clocks are Watch's.
	Client    *http.Client
	UserAgent string
	// ReplayReasoning is auto, always or never.
	ReplayReasoning string
	// Logger gets diagnostics; nil discards them.
	Logger *slog.Logger

	// secrets are the values that no message may hold.
	secrets []string
}

// clientOptions are what the HTTP client of one provider depends on.
type clientOptions struct {
	// proxy is a proxy URL; empty leaves the choice to the environment.
	proxy string
	// caFile is a PEM file of further root certificates.
	caFile string
	getenv func(string) string
}

const (
	dialTimeout = 30 * time.Second
	idleTimeout = 90 * time.Second
	// idlePerHost lets as many agents as a list job may have keep their
	// connections between two turns.
	idlePerHost = 1000
	// maxEventBytes bounds one event of a stream; images and encrypted
	// reasoning stay far below.
	maxEventBytes = 16 << 20
	// maxRedirects is plenty for one server that corrects a path.
	maxRedirects = 3
)

// newClient makes a client with a transport of its own. It has no overall
// timeout, because an answer may stream for an hour.
func newClient(o clientOptions) (*http.Client, error) {
	proxy, err := proxyFor(o)
	if err != nil {
		return nil, err
	}
	roots, err := rootsFor(o)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			Proxy: proxy,
			OnProxyConnectResponse: func(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
				if resp.StatusCode == http.StatusOK {
					return nil
				}
				return &proxyError{status: resp.StatusCode, host: proxy.Host}
			},
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: dialTimeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: idlePerHost,
			IdleConnTimeout:     idleTimeout,
			// A compressor between server and reader holds small deltas back.
			DisableCompression: true,
		},
	}, nil
}

// proxyFor returns the proxy function. Hosts of NO_PROXY and this machine are
// never proxied, wherever the proxy is set.
func proxyFor(o clientOptions) (func(*http.Request) (*url.URL, error), error) {
	env := func(name string) string {
		if v := o.getenv(name); v != "" {
			return v
		}
		return o.getenv(strings.ToLower(name))
	}
	c := httpproxy.Config{NoProxy: env("NO_PROXY"), HTTPProxy: o.proxy, HTTPSProxy: o.proxy}
	setting := "proxy"
	if o.proxy == "" {
		setting = "HTTPS_PROXY or HTTP_PROXY"
		c.HTTPSProxy, c.HTTPProxy = env("HTTPS_PROXY"), env("HTTP_PROXY")
		if o.getenv("REQUEST_METHOD") != "" {
			// In a CGI program HTTP_PROXY is a header that a stranger sent.
			c.HTTPProxy = ""
		}
	}
	for _, p := range []string{c.HTTPProxy, c.HTTPSProxy} {
		if err := checkProxy(p); err != nil {
			return nil, fmt.Errorf("%s %w", setting, err)
		}
	}
	choose := c.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }, nil
}

func checkProxy(proxy string) error {
	if proxy == "" {
		return nil
	}
	u, err := parseProxy(proxy)
	if err != nil || u.Host == "" {
		// The parser's own words repeat the URL, and so its password.
		return errors.New("is no URL such as http://proxy.example:3128")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return nil
	}
	return fmt.Errorf("%s has the scheme %q; known are http, https, socks5 and socks5h", u.Redacted(), u.Scheme)
}

// parseProxy reads a proxy URL; like every other program it takes host:port
// for one.
func parseProxy(proxy string) (*url.URL, error) {
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy
	}
	return url.Parse(proxy)
}

// rootsFor returns the root certificates, nil for the system's own: those are
// read only when the first certificate is checked, and that is not for free.
func rootsFor(o clientOptions) (*x509.CertPool, error) {
	envFile := o.getenv("SSL_CERT_FILE")
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" && envFile == os.Getenv("SSL_CERT_FILE") {
		// The standard library honours it by itself there.
		envFile = ""
	}
	if o.caFile == "" && envFile == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read system certificates: %w", err)
	}
	if envFile != "" {
		// A stale variable must not stop a run that needs no certificate.
		if pem, err := os.ReadFile(envFile); err == nil {
			pool.AppendCertsFromPEM(pem)
		}
	}
	if o.caFile == "" {
		return pool, nil
	}
	pem, err := os.ReadFile(o.caFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file cannot be read: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file %s holds no certificate in PEM form", o.caFile)
	}
	return pool, nil
}

// redirectError refuses a redirect. Its text names the target.
type redirectError struct{ from, to *url.URL }

func (e *redirectError) Error() string {
	return "the server redirects to " + withoutQuery(e.to)
}

// withoutQuery returns a URL without what may be secret in it.
func withoutQuery(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// checkRedirect follows only redirects that keep the request a POST and its
// headers with the server they are meant for: keys travel in headers that
// net/http does not know to be secret.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1]
	sameServer := req.URL.Host == from.URL.Host && req.URL.Scheme == from.URL.Scheme
	if !sameServer || req.Method != from.Method || len(via) > maxRedirects {
		return &redirectError{from: from.URL, to: req.URL}
	}
	return nil
}
