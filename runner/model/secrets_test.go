package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEntriesOfProvidersHoldSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		in   ProviderConfig
		want map[string]string
	}{
		"nothing":            {ProviderConfig{BaseURL: "https://h.example/v1", Headers: map[string]string{"X-Team": "blue", "X-Api-Key": ""}}, map[string]string{}},
		"scheme and token":   {ProviderConfig{Headers: map[string]string{"Proxy-Authorization": "Basic dXNlcjpwYXNz"}}, map[string]string{"header Proxy-Authorization": "dXNlcjpwYXNz"}},
		"cookies":            {ProviderConfig{Headers: map[string]string{"Cookie": "sid=first-crumb; other=second-crumb"}}, map[string]string{"header Cookie": "other=second-crumb", "header Cookie ": "first-crumb", "header Cookie  ": "second-crumb"}},
		"passwords":          {ProviderConfig{BaseURL: "https://me:of-the-url@h/v1", Proxy: "u:of-the-proxy@p:3128"}, map[string]string{"password in base_url": "of-the-url", "password in proxy": "of-the-proxy"}},
		"keys in an address": {ProviderConfig{BaseURL: "https://h/v1?api-version=2024&key=of-the-query&sig=a%2Fb"}, map[string]string{"key in base_url": "of-the-query", "sig in base_url": "a/b"}},
		"no address":         {ProviderConfig{BaseURL: "https://h:x:y/%zz?key=1", Proxy: "::"}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.in.Secrets()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
