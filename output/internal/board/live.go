package board

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"drover/output/internal/term"
)

// This file lays out what is not final yet, one item at a time.

const (
	// maxLiveText is how many rows an unfinished line of text gets, and liveText
	// how many bytes of it can be needed for that.
	maxLiveText = 3
	liveText    = 4 << 10
)

// live is a frame that is not committed.
func (p Painter) live(f *Frame, now time.Time) *part {
	if f.State.Final() {
		return &part{header: p.header(p.Style.of(f), p.head(f), p.meta(f), p.width())}
	}
	look := p.Style.of(f)
	if f.State == Executing && f.asks() {
		look = p.Style.awaiting
	}
	made := &part{header: p.header(look, p.liveHead(f), p.liveMeta(f, now), p.width())}
	if f.State != Executing {
		return made
	}
	look = p.Style.running
	for _, c := range f.Children {
		text := p.childCounts(c)
		if len(f.Children) > 1 {
			text = p.doing(c) + p.Style.between + text
		}
		made.tail = append(made.tail, p.below(look, text))
	}
	if len(f.Children) == 0 {
		lines, _ := f.Tail(maxTail)
		for _, line := range lines {
			made.tail = append(made.tail, p.below(look, line))
		}
	}
	made.want = min(len(made.tail), maxTail)
	return made
}

// asks tells whether an agent of the call waits for an answer.
func (f *Frame) asks() bool {
	for _, c := range f.Children {
		if c.asks() {
			return true
		}
	}
	return false
}

func (c *Child) asks() bool {
	f := c.now()
	return f != nil && f.State == Awaiting
}

// liveHead is what the call does, or the end of its arguments as they came.
func (p Painter) liveHead(f *Frame) head {
	h := p.head(f)
	switch {
	case f.State == Streaming || f.State == Awaiting && f.Display == "":
		h.preview, h.end = term.Label(f.Args), true
		if f.ArgsBytes > len(f.Args) {
			h.preview = p.Style.ellipsis + h.preview
		}
	case len(f.Children) == 1:
		h.preview = p.doing(f.Children[0])
	}
	return h
}

func (p Painter) liveMeta(f *Frame, now time.Time) meta {
	switch {
	case f.State == Pending:
		return meta{words: "pending"}
	case f.State == Streaming:
		return meta{words: bytesText(f.ArgsBytes)}
	case f.State == Awaiting, f.asks():
		return p.needsApproval()
	case f.Plan != nil:
		return p.meta(f)
	}
	return meta{took: elapsed(now.Sub(f.began))}
}

func (p Painter) needsApproval() meta {
	if p.Columns < narrow {
		return meta{words: "approval"}
	}
	return meta{words: "needs approval"}
}

// child is an agent that is not in the frame of a call.
func (p Painter) child(c *Child, now time.Time) *part {
	look, m := p.Style.running, meta{took: elapsed(now.Sub(c.began))}
	if c.asks() {
		look, m = p.Style.awaiting, p.needsApproval()
	}
	return &part{header: p.header(look, head{name: "agent", preview: p.doing(c)}, m, p.width())}
}

// doing is what an agent does at the moment.
func (p Painter) doing(c *Child) string {
	words := []string{term.Label(c.Agent)}
	if c.Turn > 0 {
		words = append(words, fmt.Sprintf("turn %d", c.Turn))
	}
	if f := c.now(); f != nil {
		words = append(words, strings.TrimRight(term.Label(f.Name)+" "+p.preview(f), " "))
	}
	return strings.Join(words, p.Style.between)
}

func (p Painter) childCounts(c *Child) string {
	words := []string{plural(c.Calls+len(c.frames), "call")}
	if c.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", c.Failed))
	}
	if c.Tokens > 0 {
		words = append(words, tokens(c.Tokens))
	}
	return strings.Join(words, p.Style.between)
}

// last is the end of the line that a text is at: as much of it as can be seen.
// Where it begins stays the same for a while, so that rows do not flow.
func (t *text) last() []byte {
	rest := bytes.TrimRight(t.rest, "\n")
	rest = rest[bytes.LastIndexByte(rest, '\n')+1:]
	if n := len(rest) / liveText; n > 1 {
		rest = rest[(n-1)*liveText:]
	}
	return rest
}

// text is the last line of a text that is not committed.
func (p Painter) text(t *text) *part {
	line := term.Text(string(t.last()))
	if t.agent != "" {
		line = term.Label(t.agent) + "  " + line
	}
	lines := term.Wrap(line, p.width())
	for i, l := range lines {
		lines[i] = p.thought(t.thought, l)
	}
	last := len(lines) - 1
	return &part{text: true, header: lines[last], tail: lines[max(0, last+1-maxLiveText):last]}
}
