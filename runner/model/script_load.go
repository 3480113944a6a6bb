package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"drover/output/fault"
)

// maxScriptBytes bounds a script file. A bigger one is no script.
const maxScriptBytes = 256 << 20

// scriptLine is one model response of a script, checked.
type scriptLine struct {
	// where names the line in messages: "line 3", "document 2 (line 9)".
	where           string
	text, reasoning string
	calls           []scriptCall
	usage           *Usage
	finish          FinishReason
	// failure is how the response fails, before or after its content.
	failure *Error
	cut     bool
	delay   time.Duration
	chunk   int
	expect  *regexp.Regexp
	capture []scriptCapture
	// agent is the glob of the sub-agents that the line belongs to; "" is root.
	agent string
}

// scriptCall is one call of a response.
type scriptCall struct {
	id, name string
	// args is what is streamed: JSON text, raw text or a freeform input.
	args string
	// json says that args is valid JSON, filled that it may hold ${name}.
	json, filled, freeform bool
}

// scriptCapture stores a group's match under a name.
type scriptCapture struct {
	name string
	re   *regexp.Regexp
}

// scriptMistake is what is wrong with one line.
type scriptMistake struct{ why, fix string }

func (m *scriptMistake) Error() string { return m.why }

func mistake(format string, args ...any) error {
	return &scriptMistake{why: fmt.Sprintf(format, args...)}
}

func loadScript(path string) ([]scriptLine, error) {
	data, err := readScript(path)
	if err != nil {
		return nil, scriptInvalid(path, "", err)
	}
	lines, where, err := parseScript(path, data)
	if err != nil {
		return nil, scriptInvalid(path, where, err)
	}
	return lines, nil
}

func readScript(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	// A pipe could block for ever, and a folder has no lines.
	if !info.Mode().IsRegular() {
		return nil, mistake("it is not a regular file")
	}
	if info.Size() > maxScriptBytes {
		return nil, mistake("it is larger than %d MiB", maxScriptBytes>>20)
	}
	return os.ReadFile(path)
}

func scriptInvalid(path, where string, err error) error {
	e := &fault.Error{
		Code: "script_invalid", What: "read the script " + path, Why: err.Error(),
		Fix: "drover schema script shows what a line may hold", Exit: fault.Config, Err: err,
	}
	if where != "" {
		e.Why = where + ": " + e.Why
	}
	if m, ok := err.(*scriptMistake); ok && m.fix != "" {
		e.Fix = m.fix
	}
	return e
}

// parseScript parses the bytes of a script. On an error, where names the line
// or document at fault.
func parseScript(path string, data []byte) (lines []scriptLine, where string, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, "", mistake("it is not UTF-8 text")
	}
	p := &scriptParser{patterns: map[string]*regexp.Regexp{}}
	if isYAML(path, data) {
		where, err = p.yamlDocuments(data)
	} else {
		where, err = p.jsonLines(data)
	}
	if err == nil && len(p.lines) == 0 {
		err = mistake("it holds no response")
	}
	return p.lines, where, err
}

// scriptParser collects the lines. Patterns are compiled once, since scripts
// for load tests repeat them thousands of times.
type scriptParser struct {
	lines    []scriptLine
	patterns map[string]*regexp.Regexp
}

func (p *scriptParser) jsonLines(data []byte) (where string, err error) {
	p.lines = make([]scriptLine, 0, bytes.Count(data, []byte("\n"))+1)
	for n := 1; len(data) > 0; n++ {
		raw, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		where = "line " + strconv.Itoa(n)
		if err := p.add(where, raw); err != nil {
			return where, err
		}
	}
	return "", nil
}

// add checks one JSON object and appends it as a line.
func (p *scriptParser) add(where string, line []byte) error {
	if !json.Valid(line) {
		return &scriptMistake{
			why: "it is no complete JSON object: " + syntaxProblem(line),
			fix: "write one whole object per line, or YAML documents in a file ending in .yaml",
		}
	}
	raw := string(line)
	if raw[0] != '{' {
		return mistake("it is %s, not an object", jsonType(raw))
	}
	p.lines = append(p.lines, scriptLine{where: where, chunk: defaultChunk})
	return p.line(&p.lines[len(p.lines)-1], raw)
}

func syntaxProblem(raw []byte) string {
	var any json.RawMessage
	err := json.Unmarshal(raw, &any)
	if s, ok := err.(*json.SyntaxError); ok {
		return fmt.Sprintf("%v at byte %d", s, s.Offset)
	}
	return fmt.Sprint(err)
}

// Keys of the objects in a line, in the order of the schema.
var (
	scriptLineKeys = []string{"text", "reasoning", "tool_calls", "usage", "finish", "error", "cut",
		"delay_ms", "chunk", "expect", "capture", "agent"}
	scriptCallKeys  = []string{"name", "args", "args_raw", "input", "id"}
	scriptErrorKeys = []string{"status", "message", "retry_after"}
	scriptUsageKeys = []string{"input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens"}
	scriptFinishes  = []string{string(Stop), string(ToolCalls), string(Length), string(ContentFilter), string(Refusal)}
)

func (p *scriptParser) line(l *scriptLine, raw string) error {
	var seen keySet
	err := members(raw, func(key, v string) (err error) {
		if err := seen.add(key, scriptLineKeys); err != nil {
			return err
		}
		switch key {
		case "text":
			l.text, err = jsonString(key, v)
		case "reasoning":
			l.reasoning, err = jsonString(key, v)
		case "tool_calls":
			l.calls, err = scriptCalls(v)
		case "usage":
			l.usage, err = scriptUsage(v)
		case "finish":
			l.finish, err = scriptFinish(v)
		case "error":
			l.failure, err = scriptError(l.where, v)
		case "cut":
			l.cut, err = jsonBool(key, v)
		case "delay_ms":
			var n int64
			n, err = jsonInt(key, v, 0, int64(24*time.Hour/time.Millisecond))
			l.delay = time.Duration(n) * time.Millisecond
		case "chunk":
			var n int64
			n, err = jsonInt(key, v, 1, math.MaxInt32)
			l.chunk = int(n)
		case "expect":
			l.expect, err = p.pattern(key, v)
		case "capture":
			l.capture, err = p.captures(v)
		case "agent":
			l.agent, err = scriptAgent(v)
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.check()
}

// check refuses combinations in which one key would silently win.
func (l *scriptLine) check() error {
	if l.failure != nil && l.cut {
		return mistake("error and cut exclude each other")
	}
	if broken := l.failure != nil || l.cut; broken && (l.usage != nil || l.finish != "") {
		return mistake("a response that ends with error or cut has no finish and no usage")
	}
	return nil
}

func scriptCalls(raw string) ([]scriptCall, error) {
	if raw[0] != '[' {
		return nil, mistake("tool_calls must be an array, it is %s", jsonType(raw))
	}
	var calls []scriptCall
	err := elements(raw, func(v string) error {
		c, err := scriptCallOf(v)
		if m, ok := err.(*scriptMistake); ok {
			m.why = fmt.Sprintf("tool_calls[%d]: %s", len(calls), m.why)
		}
		calls = append(calls, c)
		return err
	})
	return calls, err
}

func scriptCallOf(raw string) (c scriptCall, err error) {
	if raw[0] != '{' {
		return c, mistake("a call must be an object, it is %s", jsonType(raw))
	}
	var seen keySet
	form := ""
	err = members(raw, func(key, v string) (err error) {
		if err := seen.add(key, scriptCallKeys); err != nil {
			return err
		}
		switch key {
		case "name":
			c.name, err = jsonString(key, v)
		case "id":
			if c.id, err = jsonString(key, v); err == nil && c.id == "" {
				err = mistake("id must not be empty")
			}
		default:
			if form != "" {
				return mistake("%s and %s exclude each other", form, key)
			}
			form = key
			err = c.setArgs(key, v)
		}
		return err
	})
	if err == nil && c.name == "" {
		err = mistake("name is missing")
	}
	return c, err
}

func (c *scriptCall) setArgs(key, v string) (err error) {
	if key != "args" {
		c.freeform = key == "input"
		c.args, err = jsonString(key, v)
		return err
	}
	if v[0] != '{' {
		return &scriptMistake{
			why: "args must be an object, it is " + jsonType(v),
			fix: "use args_raw for arguments that are no JSON object, input for a freeform tool",
		}
	}
	c.json = true
	// The characters of ${ may be written as escapes too.
	c.filled = strings.Contains(v, "${") || strings.Contains(v, `\u00`)
	if strings.ContainsAny(v, jsonSpace) {
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(v)); err != nil {
			return mistake("args: %v", err)
		}
		v = b.String()
	}
	c.args = v
	return nil
}

func scriptUsage(raw string) (*Usage, error) {
	if raw[0] != '{' {
		return nil, mistake("usage must be an object, it is %s", jsonType(raw))
	}
	u := &Usage{}
	fields := []*int64{&u.InputTokens, &u.OutputTokens, &u.CachedInputTokens, &u.CacheWriteTokens, &u.ReasoningTokens}
	var seen keySet
	err := members(raw, func(key, v string) (err error) {
		if err := seen.add(key, scriptUsageKeys); err != nil {
			return err
		}
		*fields[slices.Index(scriptUsageKeys, key)], err = jsonInt(key, v, 0, math.MaxInt64)
		return err
	})
	return u, err
}

func scriptFinish(raw string) (FinishReason, error) {
	s, err := jsonString("finish", raw)
	if err == nil && !slices.Contains(scriptFinishes, s) {
		err = &scriptMistake{why: fmt.Sprintf("finish %q is unknown", s), fix: nearestFix(s, scriptFinishes)}
	}
	return FinishReason(s), err
}

func scriptError(where string, raw string) (*Error, error) {
	if raw[0] != '{' {
		return nil, mistake("error must be an object, it is %s", jsonType(raw))
	}
	var seen keySet
	var status int64
	var message string
	var after time.Duration
	err := members(raw, func(key, v string) (err error) {
		if err := seen.add(key, scriptErrorKeys); err != nil {
			return err
		}
		switch key {
		case "status":
			status, err = jsonInt(key, v, 400, 599)
		case "message":
			message, err = jsonString(key, v)
		case "retry_after":
			after, err = jsonSeconds(key, v)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	e := scriptFailure(int(status), message)
	if after > 0 {
		e.RetryAfter = after
	}
	if e.Message == "" {
		e.Message = where + " of the script is an error"
	}
	return e, nil
}

func (p *scriptParser) pattern(key string, raw string) (*regexp.Regexp, error) {
	s, err := jsonString(key, raw)
	if err != nil {
		return nil, err
	}
	if re := p.patterns[s]; re != nil {
		return re, nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, mistake("%s: %v", key, err)
	}
	p.patterns[s] = re
	return re, nil
}

func (p *scriptParser) captures(raw string) ([]scriptCapture, error) {
	if raw[0] != '{' {
		return nil, mistake("capture must be an object of name and pattern, it is %s", jsonType(raw))
	}
	var all []scriptCapture
	var seen keySet
	err := members(raw, func(name, v string) error {
		if err := seen.add(name, nil); err != nil {
			return err
		}
		if !captureName().MatchString(name) {
			return mistake("capture name %q may hold only letters, digits, _, - and .", name)
		}
		re, err := p.pattern("capture "+name, v)
		if err == nil && re.NumSubexp() == 0 {
			err = &scriptMistake{
				why: fmt.Sprintf("capture %s: the pattern %q has no group", name, re),
				fix: "put what is to be captured in parentheses",
			}
		}
		all = append(all, scriptCapture{name: name, re: re})
		return err
	})
	return all, err
}

var captureName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]+$`) })

func scriptAgent(raw string) (string, error) {
	s, err := jsonString("agent", raw)
	switch {
	case err != nil:
		return "", err
	case s == "" || !doublestar.ValidatePattern(s):
		return "", mistake("agent %q is no glob", s)
	case s == rootAgent:
		return "", &scriptMistake{why: "agent names the root agent", fix: "leave agent out: a line without it belongs to the root"}
	}
	return s, nil
}

// scriptFailure is the error that a server would cause with this answer; status
// 0 is a connection that breaks before any answer.
func scriptFailure(status int, message string) *Error {
	if status == 0 {
		return &Error{Kind: ErrConnect, Message: message, Retryable: true}
	}
	var server endpoint
	e := server.statusError(status, nil, []byte(message))
	// There is no server whose settings could be looked at.
	e.Fix = ""
	return e
}
