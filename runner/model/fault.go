package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"drover/output/fault"
	"drover/runner/internal/sse"
)

// failure returns the error of a request that broke on the way: before the
// response began, or in its middle.
func (p *endpoint) failure(ctx context.Context, err error, opened bool) *Error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	e := &Error{Kind: ErrConnect, Retryable: true, Err: maskedError{p.clean(err.Error(), maxMessage), err}}
	if opened {
		e.Kind = ErrCut
	}
	var redirect *redirectError
	var refused *proxyError
	var cert *tls.CertificateVerificationError
	var noHost *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, sse.ErrTooLarge):
		e.Kind, e.Retryable = ErrTooLarge, false
		e.Message = fmt.Sprintf("one event of the stream is larger than %d MiB", maxEventBytes>>20)
	case errors.As(err, &redirect):
		e.Kind, e.Retryable = ErrRequest, false
		e.Message = p.clean(redirect.Error(), maxMessage)
		e.Fix = "set base_url of the provider " + p.Name + " to that server if it is the right one; keys are not sent on to another server"
	case errors.As(err, &refused):
		e.Status, e.Retryable = refused.status, refused.status >= 500
		e.Message = refused.Error()
		e.Fix = "check proxy of the provider " + p.Name + ", or HTTPS_PROXY and NO_PROXY"
	case errors.As(err, &cert):
		e.Retryable = false
		p.certificate(e, cert)
	case errors.Is(err, http.ErrSchemeMismatch):
		e.Retryable = false
		e.Message = "the server at " + p.host() + " does not speak TLS"
		e.Fix = "write http:// instead of https:// in base_url of the provider " + p.Name + " if the server is your own"
	case errors.As(err, &op) && op.Op == "proxyconnect":
		e.Message = "the proxy cannot be reached: " + p.clean(op.Err.Error(), maxMessage)
		e.Fix = "check proxy of the provider " + p.Name + ", or HTTPS_PROXY and NO_PROXY"
	case errors.As(err, &noHost):
		e.Message = "the host " + p.clean(noHost.Name, 100) + " cannot be found"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = "nothing listens at " + p.host()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		e.Message = "the server closed the connection before it answered"
		if opened {
			e.Message = "the stream broke before the response was complete"
		}
	default:
		e.Message = p.clean(innermost(err).Error(), maxMessage)
	}
	if e.Fix == "" {
		e.Fix = p.fix(e)
	}
	return e
}

func cancelled(ctx context.Context) *Error {
	return &Error{Kind: ErrCancelled, Message: "the request was cancelled", Err: context.Cause(ctx)}
}

// certificate explains why a server's certificate was refused.
func (p *endpoint) certificate(e *Error, cert *tls.CertificateVerificationError) {
	why := "it is not valid"
	issuer := "nobody"
	if len(cert.UnverifiedCertificates) > 0 {
		issuer = cert.UnverifiedCertificates[0].Issuer.String()
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.As(cert.Err, &unknown):
		why = "its issuer is not trusted here"
		e.Fix = "set ca_file of the provider " + p.Name + " (or SSL_CERT_FILE) to a PEM file with the issuer's root certificate"
	case errors.As(cert.Err, &invalid) && invalid.Reason == x509.Expired:
		why = "it has expired, or a clock is wrong"
		e.Fix = "check the clock; a new root certificate goes into ca_file of the provider " + p.Name
	case errors.As(cert.Err, &name):
		why = "it is made out for another name"
		e.Fix = "check the host in base_url of the provider " + p.Name + "; ca_file cannot help here"
	default:
		e.Fix = "check ca_file of the provider " + p.Name
	}
	e.Message = p.clean(fmt.Sprintf("the certificate of %s, issued by %q, is refused: %s", p.host(), issuer, why), maxMessage)
}

// host is the server's host as the user set it.
func (p *endpoint) host() string {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return "the server"
	}
	return u.Host
}

// innermost returns the cause that names no URL.
func innermost(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// maskedError keeps a cause for errors.Is without the secrets in its text.
type maskedError struct {
	text string
	err  error
}

func (e maskedError) Error() string { return e.text }
func (e maskedError) Unwrap() error { return e.err }

// proxyError is a proxy's refusal to connect.
type proxyError struct {
	status int
	host   string
}

func (e *proxyError) Error() string {
	return fmt.Sprintf("the proxy %s refused to connect: %d %s", e.host, e.status, http.StatusText(e.status))
}

// fix says what a person can do about e.
func (p *endpoint) fix(e *Error) string {
	key := "the key in " + p.KeyEnv
	if p.KeyEnv == "" {
		key = "api_key_env of the provider " + p.Name
	}
	switch e.Kind {
	case ErrAuth:
		return "check " + key + ": it may be wrong, expired, or without access to this model"
	case ErrQuota:
		return "check plan and billing of the account behind " + key
	case ErrRate:
		return "try again later, or run fewer agents at once"
	case ErrNotFound:
		if !saysModel(e.Message) {
			return "check base_url of the provider " + p.Name + ", which is " + p.shownURL()
		}
		if p.Name == "ollama" {
			return "fetch it with ollama pull, or name another model"
		}
		return "check the model's name with the provider " + p.Name
	case ErrContext:
		return "use a model with a larger context window, or give a smaller task"
	case ErrConnect:
		return "check the network and base_url of the provider " + p.Name + ", which is " + p.shownURL()
	}
	return ""
}

// shownURL is the base URL without what may be secret in it.
func (p *endpoint) shownURL() string {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return "no URL"
	}
	return withoutQuery(u)
}

// saysModel tells whether a message about something that was not found is
// about the model, and not about the address.
func saysModel(message string) bool {
	return strings.Contains(strings.ToLower(message), "model")
}

// Fault returns err as an error that reaches a person; id is the model's id as
// the user wrote it. Everything that is not a provider's error keeps the class
// that it has.
func Fault(err error, id string) *fault.Error {
	var e *Error
	if !errors.As(err, &e) {
		return fault.From(err)
	}
	f := &fault.Error{
		Code: string(e.Kind), What: fmt.Sprintf("the model %q gave no answer", id), Why: e.why(), Fix: e.Fix,
		Exit: fault.Provider, Status: e.Status, Retryable: e.Retryable, Err: e,
	}
	switch e.Kind {
	case ErrAuth:
		f.Exit = fault.Auth
	case ErrNotFound:
		if saysModel(e.Message) {
			f.Exit = fault.Config
		}
	case ErrContext, ErrFilter:
		f.Exit = fault.Model
	case ErrScriptMismatch:
		f.Exit = fault.Failed
	case ErrScriptEnded:
		f.Exit = fault.Incomplete
	case ErrCancelled:
		f.Exit = fault.Interrupted
	}
	return f
}

// why is the error's text with what helps to report it.
func (e *Error) why() string {
	s := e.Error()
	if e.RequestID != "" {
		s += " (request " + e.RequestID + ")"
	}
	return s
}
