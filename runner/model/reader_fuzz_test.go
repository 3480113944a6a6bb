package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"
)

// checker fails the test when deltas break the package's contract.
type checker struct {
	t      *testing.T
	n      int
	calls  int
	ended  bool
	opened bool
}

func (c *checker) take(d Delta, err error) bool {
	if c.ended {
		c.t.Fatalf("%+v, %v follow the end", d, err)
	}
	c.n++
	if err != nil {
		var known *Error
		if c.ended = true; !errors.As(err, &known) || known.Kind == "" || len(known.Message) > 2*maxMessage {
			c.t.Fatalf("error %#v", err)
		}
		return true
	}
	if (d.Kind == Opened) == c.opened {
		c.t.Fatalf("%+v is delta %d", d, c.n)
	}
	c.opened = true
	if !utf8.ValidString(d.Text) {
		c.t.Fatalf("text %q is cut inside a character", d.Text)
	}
	switch d.Kind {
	case TextDelta, ReasoningDelta:
		if d.Text == "" {
			c.t.Fatal("a delta without text")
		}
	case CallStart:
		if d.Index != c.calls {
			c.t.Fatalf("call %d starts after %d calls", d.Index, c.calls)
		}
		c.calls++
	case CallArgs:
		if d.Index < 0 || d.Index >= c.calls {
			c.t.Fatalf("arguments of call %d of %d", d.Index, c.calls)
		}
	case Keep:
		if !json.Valid(d.Item.Opaque) || d.Item.Origin != "test" {
			c.t.Fatalf("kept %s", d.Item.Opaque)
		}
	case Finish:
		if c.ended = true; d.Reason == "" {
			c.t.Fatal("no reason")
		}
	}
	return true
}

// fuzzReader feeds streams of any bytes to a reader.
func fuzzReader(f *testing.F, reader func(*endpoint, *Request) eventReader) {
	req := &Request{Tools: []Tool{{Name: "f", Freeform: true}, {Name: "a"}}}
	f.Fuzz(func(t *testing.T, stream []byte) {
		p := &endpoint{Name: "test"}
		r := reader(p, req)
		c := &checker{t: t}
		r.begin(c.take)
		if err := p.readEvents(context.Background(), bytes.NewReader(stream), r); err != nil {
			c.take(Delta{}, err)
		}
		if !c.ended {
			t.Fatal("the stream has no end")
		}
	})
}

func FuzzResponsesReader(f *testing.F) {
	for _, s := range []string{
		`data: {"type":"response.created"}` + "\n\n" + `data: {"type":"response.output_text.delta","delta":"a"}` + "\n\n" + `data: {"type":"response.completed","response":{"usage":{"input_tokens":1}}}` + "\n\n",
		`data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"i","call_id":"c","name":"f"}}` + "\n\n" + `data: {"type":"response.function_call_arguments.delta","item_id":"i","delta":"{\"input\":\"\\ud83d"}` + "\n\n" + `data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}` + "\r\n\r\n",
		`data: {"type":"response.function_call_arguments.done","item_id":"i","arguments":"{}"}` + "\n\n" + `data: {"type":"response.completed","response":{"output":[{"type":"function_call","id":"i","name":"a","arguments":{"x":1}},{"type":"reasoning","encrypted_content":"e"},{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}}` + "\n\n",
		"event: error\ndata: {\"error\":{\"code\":500}}\n\n", "data: {\"error\":1}\n\ndata: [DONE]\n\n",
	} {
		f.Add([]byte(s))
	}
	fuzzReader(f, func(p *endpoint, req *Request) eventReader { return newResponsesReader(p, req) })
}

func FuzzMessagesReader(f *testing.F) {
	for _, s := range []string{
		`data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}` + "\n\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{"input":"x"}}}` + "\n\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
		`data: {"type":"content_block_start","content_block":{"type":"thinking","thinking":"t","signature":"s"}}` + "\n\n" + `data: {"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"u"}}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"}}` + "\n\n" + `data: {"type":"message_stop"}`,
		`data: {"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"d"}}` + "\n\n" + `data: {"type":"content_block_stop"}` + "\n\n" + `data: {"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{"}}` + "\n\n",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
	} {
		f.Add([]byte(s))
	}
	fuzzReader(f, func(p *endpoint, req *Request) eventReader { return newMessagesReader(p, req) })
}
