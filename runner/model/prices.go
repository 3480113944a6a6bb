package model

import (
	"regexp"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// Prices are US dollars for a million tokens.
type Prices struct {
	Input, Output float64
	// CacheRead and CacheWrite are of input tokens that a cache had, or took.
	CacheRead, CacheWrite float64
}

// Prices returns what the model's tokens cost, and false where that is not known:
// not known is not free. The config comes first, then the list of prices that is
// part of drover, for providers that are asked at their own address. A model of
// another server with a famous name may cost anything.
func (m *OpenedModel) Prices() (Prices, bool) {
	if m.Free {
		return Prices{}, true
	}
	if in, out := m.Info.InputPrice, m.Info.OutputPrice; in != nil && out != nil {
		p := Prices{Input: *in, Output: *out, CacheRead: *in, CacheWrite: *in}
		if m.Info.CachedPrice != nil {
			p.CacheRead = *m.Info.CachedPrice
		}
		return p, true
	}
	if m.listed == "" {
		return Prices{}, false
	}
	return listedPrices(m.listed, m.Model)
}

// priceList is read when the first price is asked for: a run without a priced
// model pays nothing for it.
var priceList = sync.OnceValue(embedded.GetAll)

// listedPrices looks a model up. Prices that the list does not have, it has as 0.
func listedPrices(provider, name string) (Prices, bool) {
	for _, p := range priceList() {
		if string(p.ID) != provider {
			continue
		}
		for _, m := range p.Models {
			if sameModel(m.ID, name) && m.CostPer1MIn > 0 && m.CostPer1MOut > 0 {
				return priced(m), true
			}
		}
	}
	return Prices{}, false
}

// priced takes the prices of one model. What is unknown of the cache is charged
// like any input, so that an estimate is never too low.
func priced(m catwalk.Model) Prices {
	p := Prices{Input: m.CostPer1MIn, Output: m.CostPer1MOut, CacheRead: m.CostPer1MIn, CacheWrite: m.CostPer1MIn}
	if read := m.CostPer1MOutCached; read > 0 && read < p.Input {
		p.CacheRead = read
	}
	if write := m.CostPer1MInCached; write > p.Input {
		p.CacheWrite = write
	}
	return p
}

var dated = regexp.MustCompile(`-(\d{8}|\d{4}-\d{2}-\d{2})$`)

// sameModel tells whether two names mean one model: they are equal, or one of
// them has a date.
func sameModel(a, b string) bool {
	if a == b {
		return true
	}
	plainA, plainB := dated.ReplaceAllString(a, ""), dated.ReplaceAllString(b, "")
	return plainA == plainB && (plainA == a || plainB == b)
}

// listedProvider is the name of a provider in the list of prices, "" if its
// prices are not known there.
func listedProvider(name, baseURL string) string {
	base, ok := builtin[name]
	if !ok || strings.TrimSuffix(baseURL, "/") != strings.TrimSuffix(base.BaseURL, "/") {
		return ""
	}
	return name
}
