package model

import (
	"net/http"
	"strings"
)

// kindOfCode are the codes and types that say what is wrong whatever the status
// is. Servers use them in either field.
var kindOfCode = map[string]ErrorKind{
	"context_length_exceeded":    ErrContext,
	"context_window_exceeded":    ErrContext,
	"exceed_context_size_error":  ErrContext,
	"request_too_large":          ErrContext,
	"insufficient_quota":         ErrQuota,
	"insufficient_balance":       ErrQuota,
	"billing_error":              ErrQuota,
	"billing_hard_limit_reached": ErrQuota,
	"billing_not_active":         ErrQuota,
	"payment_required":           ErrQuota,
	"usage_limit_reached":        ErrQuota,
	"usage_not_included":         ErrQuota,
	"model_not_found":            ErrNotFound,
	"unknown_model":              ErrNotFound,
	"content_filter":             ErrFilter,
	"content_policy_violation":   ErrFilter,
	"invalid_prompt":             ErrFilter,
	"invalid_api_key":            ErrAuth,
	"api_key_invalid":            ErrAuth,
	"authentication_error":       ErrAuth,
	"permission_error":           ErrAuth,
	"permission_denied":          ErrAuth,
	"unauthenticated":            ErrAuth,
	"unauthorized":               ErrAuth,
}

// weakKindOfCode are codes that count only where no status says more, inside
// a stream.
var weakKindOfCode = map[string]ErrorKind{
	"overloaded_error":      ErrOverloaded,
	"overloaded":            ErrOverloaded,
	"server_overloaded":     ErrOverloaded,
	"server_is_overloaded":  ErrOverloaded,
	"engine_overloaded":     ErrOverloaded,
	"slow_down":             ErrOverloaded,
	"unavailable":           ErrOverloaded,
	"service_unavailable":   ErrOverloaded,
	"rate_limit_exceeded":   ErrRate,
	"rate_limit_error":      ErrRate,
	"rate_limit":            ErrRate,
	"rate_limited":          ErrRate,
	"too_many_requests":     ErrRate,
	"resource_exhausted":    ErrRate,
	"invalid_request_error": ErrRequest,
	"invalid_argument":      ErrRequest,
	"bad_request":           ErrRequest,
	"not_found_error":       ErrNotFound,
	"not_found":             ErrNotFound,
}

// kind classes the complaint. Status 0 stands for an event inside a stream.
func (c complaint) kind(status int) ErrorKind {
	for _, word := range [...]string{c.code, c.typ} {
		if k, ok := kindOfCode[word]; ok {
			return k
		}
	}
	if k := c.kindOfWords(status); k != "" {
		return k
	}
	if status != 0 {
		return kindOfStatus(status)
	}
	for _, word := range [...]string{c.code, c.typ} {
		if k, ok := weakKindOfCode[word]; ok {
			return k
		}
	}
	return ErrServer
}

// kindOfWords reads the message where servers have no code for what matters
// most: too long, no money, no such model.
func (c complaint) kindOfWords(status int) ErrorKind {
	text := strings.ToLower(c.message)
	has := func(phrases ...string) bool {
		for _, p := range phrases {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound:
		return ""
	case has("context length", "context window", "context size", "prompt is too long", "input is too long", "maximum context"):
		if status != http.StatusTooManyRequests {
			return ErrContext
		}
	case has("credit balance is too low", "insufficient balance", "insufficient credits", "insufficient_quota"):
		return ErrQuota
	case status == http.StatusBadRequest && has("api key not valid", "invalid api key", "incorrect api key"):
		return ErrAuth
	case status == http.StatusBadRequest && (has("not a valid model", "invalid model", "unknown model") ||
		has("model") && has("does not exist", "not found", "is not supported with")):
		return ErrNotFound
	}
	return ""
}

func kindOfStatus(status int) ErrorKind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrAuth
	case http.StatusPaymentRequired:
		return ErrQuota
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusProxyAuthRequired:
		return ErrConnect
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return ErrServer
	case http.StatusRequestEntityTooLarge:
		return ErrContext
	case http.StatusTooManyRequests:
		return ErrRate
	case http.StatusServiceUnavailable, 529:
		return ErrOverloaded
	}
	if status >= 500 {
		return ErrServer
	}
	return ErrRequest
}
