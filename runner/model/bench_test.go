package model

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkStream measures a response of 20,000 pieces from a server on
// loopback.
func BenchmarkStream(b *testing.B) {
	const pieces = 20000
	repeat := func(first []string, piece string, last ...string) []string {
		all := first
		for i := range pieces {
			all = append(all, strings.Replace(piece, "N", strconv.Itoa(i), 1))
		}
		return append(all, last...)
	}
	for name, c := range map[string]struct {
		build  func(endpoint) Provider
		events []string
	}{
		"responses": {newResponses, repeat([]string{`response.created {"type":"response.created"}`},
			`response.output_text.delta {"type":"response.output_text.delta","sequence_number":N,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" word","logprobs":[],"obfuscation":"abcdefgh"}`,
			`response.completed {"type":"response.completed","response":{}}`)},
		"messages": {newMessages, repeat([]string{`message_start {"type":"message_start","message":{}}`},
			`content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word N"}}`,
			`message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `message_stop {"type":"message_stop"}`)},
	} {
		b.Run(name, func(b *testing.B) {
			p := serve(b, c.build, 16<<10, c.events...)
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range p.Stream(context.Background(), &Request{Model: "m"}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkRequest measures building and sending a long conversation.
func BenchmarkRequest(b *testing.B) {
	var items []Item
	for i := range 100 {
		id := "call_" + strconv.Itoa(i)
		items = append(items, called(id), result(id, strings.Repeat("some output\n", 100)))
	}
	for name, build := range map[string]func(endpoint) Provider{"responses": newResponses, "messages": newMessages} {
		b.Run(name, func(b *testing.B) {
			p := build(endpoint{Name: "test", BaseURL: "http://x.invalid", Client: &http.Client{Transport: roundTrip(refuse)}})
			b.ReportAllocs()
			for b.Loop() {
				for range p.Stream(context.Background(), &Request{Model: "m", Items: items}) {
				}
			}
		})
	}
}

// refuse answers every request with 400.
func refuse(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	return &http.Response{StatusCode: http.StatusBadRequest, Body: http.NoBody, Request: r}, nil
}
