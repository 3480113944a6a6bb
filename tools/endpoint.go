package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// maxAnswer bounds what is read of an endpoint's answer, in bytes.
const maxAnswer = 1 << 20

// maxHops is plenty for one server that corrects a path.
const maxHops = 3

// parseEndpoint reads the address of a dynamic tool.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the url cannot be read")
	case u.User != nil:
		return nil, errors.New("the url holds a user or a password; use headers")
	case u.Hostname() == "":
		return nil, errors.New("the url names no host")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return u, nil
	}
	return nil, errors.New("the url must begin with https:// (http:// only for this machine)")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// hostPort is the host of an address as the policy knows it.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

var errElsewhere = errors.New("it redirects to another host, which the policy was not asked about")

// endpointClient never leaves the host that the policy has judged.
func endpointClient(u *url.URL) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1,
			IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 30 * time.Second,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Scheme != u.Scheme || !strings.EqualFold(hostPort(req.URL), hostPort(u)) {
				return errElsewhere
			}
			if len(via) > maxHops {
				return errors.New("it redirects too often")
			}
			return nil
		},
	}
}

// post sends the arguments to the endpoint. The body of its answer is the
// result; any status but 2xx is a failure.
func (t *dynamic) post(ctx context.Context, env Env, args []byte, timeout time.Duration) (Result, error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodPost, t.endpoint.String(), bytes.NewReader(args))
	if err != nil {
		return Result{}, fmt.Errorf("make request: %w", err)
	}
	req.Header = t.headers.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "drover")
	resp, err := t.client.Do(req)
	if err != nil {
		return t.unreachable(ctx, within, err, timeout)
	}
	defer func() { _ = resp.Body.Close() }() // everything that is wanted was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return t.unreachable(ctx, within, err, timeout)
	}
	long := len(body) > maxAnswer
	text, _ := readable(body[:min(len(body), maxAnswer)], nil, 0)
	if long {
		text += fmt.Sprintf("\n[the rest was left out: answers are read up to %d MiB]", maxAnswer>>20)
	}
	res := Result{
		Text: env.Output.Cut(text), Display: fmt.Sprintf("%d, %d bytes", resp.StatusCode, len(body)),
		OutputBytes: int64(len(body)), Truncated: long || !env.Output.Fits(text),
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		res.IsError, res.Code = true, "http_status"
		res.Text = fmt.Sprintf("%s failed: the server answered %d %s\n%s", t.def.Name, resp.StatusCode, http.StatusText(resp.StatusCode), res.Text)
	}
	return res, nil
}

// unreachable is the result for an answer that never came whole. Its text does
// not hold the address, which is not the model's business.
func (t *dynamic) unreachable(ctx, within context.Context, err error, timeout time.Duration) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if within.Err() != nil {
		return Fail("timeout", fmt.Sprintf("%s failed: no complete answer came within %v", t.def.Name, timeout)), nil
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return Fail("unreachable", t.def.Name+" failed: "+safeText(err.Error())), nil
}
