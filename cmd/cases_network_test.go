package cmd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/output/event"
)

// authority is a private certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// pem is its certificate as a file would hold it.
	pem []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	a.key, a.cert, a.pem = certify(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	return a
}

// server returns a certificate for hosts.
func (a *authority) server(t *testing.T, hosts ...string) tls.Certificate {
	t.Helper()
	key, cert, _ := certify(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// certify signs a template, with its own key if there is no authority.
func certify(t *testing.T, template *x509.Certificate, by *authority) (*ecdsa.PrivateKey, *x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

const proxyPassword = "canary-proxy-password"

// proxy is an HTTP proxy that wants a password and leads every host to one
// server. It remembers what it was asked for.
type proxy struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.mu.Unlock()
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("agent:"+proxyPassword))
		if r.Header.Get("Proxy-Authorization") != want {
			rw.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method != http.MethodConnect {
			chatDone(rw, r)
			return
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		defer server.Close()
		client, buffered, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n") // a client that is gone shows in the test
		done := make(chan struct{})
		go func() { // ends when either side closes
			_, _ = io.Copy(server, buffered)
			close(done)
		}()
		_, _ = io.Copy(client, server)
		_ = client.Close()
		<-done
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// url is the proxy's address with its password.
func (p *proxy) url() string {
	return strings.Replace(p.URL, "http://", "http://agent:"+proxyPassword+"@", 1)
}

// TestCompanyNetwork (github.com/openai/codex/issues/6849) has a private
// authority behind a proxy with a password, in every way of setting them.
func TestCompanyNetwork(t *testing.T) {
	t.Parallel()
	ours, other := newAuthority(t, "Our Root"), newAuthority(t, "Other Root")
	secure := httptest.NewUnstartedServer(http.HandlerFunc(chatDone))
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{ours.server(t, "model.example", "localhost")}}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what is tested
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := playServer(t, chatDone)
	port := portOf(t, secure)
	const caFile, wrongFile = "ours.pem", "other.pem"
	for _, c := range []struct {
		name, base string
		env        []string
		config     string
		exit       int
		// asked is what the proxy must have been asked for, says what the error says.
		asked string
		says  []string
	}{
		{name: "CA in the config", base: "https://localhost:@PORT", config: "ca_file: " + caFile},
		{name: "CA in the environment", base: "https://localhost:@PORT", env: []string{"SSL_CERT_FILE=" + caFile}},
		{name: "no CA", base: "https://localhost:@PORT", exit: 5, says: []string{"localhost:@PORT", "Our Root", "ca_file", "SSL_CERT_FILE"}},
		{name: "wrong CA", base: "https://localhost:@PORT", config: "ca_file: " + wrongFile, exit: 5, says: []string{"localhost:@PORT", "Our Root", "ca_file"}},
		{name: "missing CA file", base: "https://localhost:@PORT", config: "ca_file: none.pem", exit: 3, says: []string{"ca_file", "none.pem"}},
		{name: "proxy in the config", base: "https://model.example", config: "ca_file: " + caFile + "\n    proxy: @PROXY", asked: "CONNECT model.example:443"},
		{name: "HTTPS_PROXY", base: "https://model.example", config: "ca_file: " + caFile, env: []string{"HTTPS_PROXY=@PROXY"}, asked: "CONNECT model.example:443"},
		{name: "https_proxy", base: "https://model.example", config: "ca_file: " + caFile, env: []string{"https_proxy=@PROXY"}, asked: "CONNECT model.example:443"},
		{name: "http_proxy", base: "http://model.example", env: []string{"http_proxy=@PROXY"}, asked: "POST model.example"},
		{name: "HTTP_PROXY and a NO_PROXY for others", base: "http://model.example:81", env: []string{"HTTP_PROXY=@PROXY", "NO_PROXY=other.example,model.example:82,10.0.0.0/8"}, asked: "POST model.example:81"},
		// Zero is this machine, too, but no loopback address.
		{name: "NO_PROXY with a port", base: "http://0.0.0.0:@OTHER", env: []string{"HTTP_PROXY=@PROXY", "NO_PROXY=0.0.0.0:@OTHER"}},
		{name: "NO_PROXY with another port", base: "http://0.0.0.0:@OTHER", env: []string{"HTTP_PROXY=@PROXY", "NO_PROXY=0.0.0.0:1"}, asked: "POST 0.0.0.0:@OTHER"},
		{name: "no_proxy with a network", base: "http://0.0.0.0:@OTHER", env: []string{"http_proxy=@PROXY", "no_proxy=10.0.0.0/8,0.0.0.0/8"}},
		{name: "wrong CA behind the proxy", base: "https://model.example", config: "ca_file: " + wrongFile, env: []string{"HTTPS_PROXY=@PROXY"}, exit: 5, asked: "CONNECT model.example:443", says: []string{"model.example", "Our Root"}},
		{name: "proxy without the password", base: "https://model.example", env: []string{"HTTPS_PROXY=@BARE"}, exit: 5, asked: "CONNECT model.example:443", says: []string{"407", "HTTPS_PROXY"}},
		{name: "localhost is not proxied", base: "https://localhost:@PORT", config: "ca_file: " + caFile, env: []string{"HTTPS_PROXY=@PROXY", "HTTP_PROXY=@PROXY"}},
		{name: "loopback is not proxied", base: "@PLAIN", env: []string{"HTTP_PROXY=@PROXY"}},
		{name: "proxy that cannot be read", base: "http://model.example", env: []string{"HTTP_PROXY=http://agent:" + proxyPassword + "@:x y"}, exit: 3, says: []string{"HTTP_PROXY"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			through := newProxy(t, secure.Listener.Addr().String())
			fill := strings.NewReplacer("@PORT", port, "@PROXY", through.url(), "@BARE", through.URL, "@PLAIN", plain.URL, "@OTHER", portOf(t, plain.Server))
			p := withServer(t, fill.Replace(c.base), "chat", "hi")
			for _, entry := range c.env {
				name, value, _ := strings.Cut(entry, "=")
				value = fill.Replace(value)
				if name == "SSL_CERT_FILE" {
					value = filepath.Join(p.dir, value)
				}
				p.cmd.Env = append(p.cmd.Env, name+"="+value)
			}
			for name, data := range map[string][]byte{caFile: ours.pem, wrongFile: other.pem} {
				for _, dir := range []string{p.dir, filepath.Join(p.dir, ".config", "drover")} {
					if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			lines := "    max_attempts: 1\n"
			if c.config != "" {
				lines += "    " + fill.Replace(c.config) + "\n"
			}
			p.addConfig(lines)
			stream := p.mustEnd(c.exit)
			for _, says := range c.says {
				if says = fill.Replace(says); !strings.Contains(p.stderr.String(), says) {
					t.Errorf("stderr %s, want %q in it", p.stderr.String(), says)
				}
			}
			asked := through.requests()
			if c.asked == "" && len(asked) > 0 || c.asked != "" && (len(asked) != 1 || asked[0] != fill.Replace(c.asked)) {
				t.Errorf("the proxy was asked for %q, want %q", asked, c.asked)
			}
			for where, text := range p.everything(stream) {
				if strings.Contains(text, proxyPassword) {
					t.Errorf("the proxy's password is in %s: %s", where, p.stderr.String())
				}
			}
			if started := bodies[event.RunStartedEvent](t, stream); (len(started) == 0) != (c.exit == 3) {
				t.Errorf("the run has started %d times", len(started))
			}
		})
	}
}

func portOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
