package model

import (
	"strings"

	"github.com/tidwall/gjson"
)

// chatCalls puts the fragments of calls together. Servers number them, name
// them, do both, neither, or it wrongly; what identifies a call is decided in
// callFor.
type chatCalls struct {
	e     *emitter
	tools []Tool
	calls []*chatCall
	// chunk counts the chunks of the stream.
	chunk int
}

// chatCall is one call as the server sends it.
type chatCall struct {
	*openCall
	// number is the server's index, -1 for none.
	number   int64
	id, text string
	// hasArgs says that arguments have begun; chunk is the last chunk that
	// brought something.
	hasArgs bool
	chunk   int
	joiner  textJoiner
}

// fragment is one entry of tool_calls.
type fragment struct {
	number   int64
	id, name string
	args     gjson.Result
}

// take takes the tool_calls of one chunk.
func (c *chatCalls) take(v gjson.Result) {
	if v.IsObject() {
		c.add(c.fragment(v), 0, 1)
		return
	}
	total := 0
	v.ForEach(func(_, _ gjson.Result) bool { total++; return true })
	at := 0
	v.ForEach(func(_, value gjson.Result) bool {
		if value.IsObject() {
			c.add(c.fragment(value), at, total)
		}
		at++
		return true
	})
}

// takeLegacy takes a function_call, the only call that there can be.
func (c *chatCalls) takeLegacy(v gjson.Result) {
	if v.IsObject() {
		f := c.fragment(v)
		f.number = 0
		c.add(f, 0, 1)
	}
}

func (c *chatCalls) fragment(v gjson.Result) fragment {
	f := fragment{number: -1}
	read := func(key, value gjson.Result) bool {
		switch key.Str {
		case "index":
			if value.Type == gjson.Number {
				f.number = value.Int()
			}
		case "id":
			f.id = value.String()
		case "name":
			f.name = strings.TrimSpace(value.String())
		case "arguments", "input":
			if value.Type != gjson.Null {
				f.args = value
			}
		}
		return true
	}
	v.ForEach(func(key, value gjson.Result) bool {
		if (key.Str == "function" || key.Str == "custom") && value.IsObject() {
			value.ForEach(read)
			return true
		}
		return read(key, value)
	})
	return f
}

// add takes one fragment, the at-th of total in its chunk.
func (c *chatCalls) add(f fragment, at, total int) {
	k := c.callFor(f, at, total)
	if k == nil {
		c.announceAll()
		k = &chatCall{openCall: c.e.newCall(), number: f.number, id: f.id}
		c.calls = append(c.calls, k)
	}
	k.chunk = c.chunk
	if k.id == "" {
		k.id = f.id
	}
	k.addName(f.name)
	if c.isWhole(k.text) {
		c.announce(k)
	}
	c.addArgs(k, f.args)
}

// callFor returns the call that a fragment continues, nil if it opens one.
//
// An id that is known decides, then the index, then the order. A name where
// there is one already opens a call of its own when the ids differ or when it
// can be neither a repetition nor the rest of a split name. An unknown id
// without a name is only one more id for the same call: some servers make up a
// new one for every fragment.
func (c *chatCalls) callFor(f fragment, at, total int) *chatCall {
	for i := len(c.calls) - 1; i >= 0 && f.id != ""; i-- {
		k := c.calls[i]
		if k.id == f.id && (f.name == "" || f.number < 0 || k.number < 0 || k.number == f.number) {
			return k
		}
	}
	k := c.last(f.number)
	if f.number < 0 && f.id == "" && f.name == "" && total > 1 && at < len(c.calls) {
		// Fragments with nothing but their place.
		k = c.calls[max(0, len(c.calls)-total)+at]
	}
	if k == nil || c.opens(f, k) {
		return nil
	}
	return k
}

// last returns the newest call with the server's number; without a number the
// newest of all.
func (c *chatCalls) last(number int64) *chatCall {
	for i := len(c.calls) - 1; i >= 0; i-- {
		if k := c.calls[i]; number < 0 || k.number == number || k.number < 0 {
			return k
		}
	}
	return nil
}

// opens tells whether a fragment that is no known call's opens a new one
// instead of continuing k.
func (c *chatCalls) opens(f fragment, k *chatCall) bool {
	switch {
	case f.name == "" || k.text == "":
		return false
	case f.id != "" && k.id != "" && f.id != k.id:
		return true
	case f.number < 0 && k.chunk == c.chunk:
		// Two entries of one chunk.
		return true
	case f.name == k.text:
		return f.beginsObject() && k.complete()
	}
	return k.hasArgs || c.offered(k.text) && c.offered(f.name)
}

// beginsObject tells whether the fragment's arguments begin like an object.
func (f fragment) beginsObject() bool {
	return f.args.IsObject() || strings.HasPrefix(strings.TrimLeft(f.args.Str, jsonSpace), "{")
}

// complete tells whether the call's arguments are a whole object that is no
// stand-in.
func (k *chatCall) complete() bool {
	args := strings.TrimSpace(k.args.raw.String())
	// Without the brace there is no need to look at all of it once more.
	return strings.HasSuffix(args, "}") && args != "{}" && gjson.Valid(args)
}

// addName takes a name that is repeated, grows, or comes in pieces.
func (k *chatCall) addName(name string) {
	switch {
	case name == "" || k.named || name == k.text:
	case strings.HasPrefix(name, k.text):
		k.text = name
	default:
		k.text += name
	}
}

func (c *chatCalls) offered(name string) bool {
	for i := range c.tools {
		if c.tools[i].Name == name {
			return true
		}
	}
	return false
}

// isWhole tells whether the name is a tool's and not the beginning of another
// one's.
func (c *chatCalls) isWhole(name string) bool {
	found := false
	for i := range c.tools {
		switch t := c.tools[i].Name; {
		case t == name:
			found = true
		case strings.HasPrefix(t, name):
			return false
		}
	}
	return found
}

// announce starts the call if it has a name.
func (c *chatCalls) announce(k *chatCall) {
	if k.named || k.text == "" {
		return
	}
	freeform := false
	for i := range c.tools {
		if c.tools[i].Name == k.text {
			freeform = c.tools[i].Freeform
		}
	}
	c.e.start(k.openCall, k.id, k.text, freeform, true)
}

func (c *chatCalls) announceAll() {
	for _, k := range c.calls {
		c.announce(k)
	}
}

// addArgs takes a piece of the arguments: text, or from some servers the object
// itself.
func (c *chatCalls) addArgs(k *chatCall, v gjson.Result) {
	switch v.Type {
	case gjson.String:
		piece := k.joiner.join(v)
		if piece == "" || piece == "null" && !k.hasArgs {
			return
		}
		k.hasArgs = true
		c.announce(k)
		c.e.emitArgs(k.openCall, piece)
	case gjson.JSON:
		k.hasArgs = true
		c.announce(k)
		c.e.emitWhole(k.openCall, v.Raw)
	}
}

// flush ends all calls.
func (c *chatCalls) flush() {
	c.announceAll()
	for _, k := range c.calls {
		if rest := k.joiner.flush(); rest != "" {
			c.e.emitArgs(k.openCall, rest)
		}
	}
}
