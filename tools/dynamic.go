package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"drover/tools/internal/proc"
	"drover/tools/policy"
)

// Dynamic is a tool that is no part of drover: a command, which gets the
// arguments as JSON on its standard input, or an address, to which they are
// posted. What comes back is the result.
type Dynamic struct {
	// Name is how the model and the policy call the tool.
	Name string
	// Doc is what the model reads.
	Doc string
	// Parameters is the JSON Schema of the arguments, which are an object; empty
	// means that there are none.
	Parameters json.RawMessage
	// Command is an argument vector, URL an https address, or an http address
	// of this machine. Exactly one of them is given.
	Command []string
	URL     string
	// Timeout bounds one call; 0 is DynamicTimeout.
	Timeout time.Duration
	// Headers are further headers of the request: the name of each, and the
	// name of the environment variable that holds its value.
	Headers map[string]string
}

// DynamicTimeout bounds the calls of a tool that sets no timeout itself.
const DynamicTimeout = 2 * time.Minute

// toolName is what every provider accepts. Like the other patterns it is made
// when it is needed first: few runs need any.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// Check tells what is wrong with the definition, in a sentence for the person
// who wrote it.
func (d Dynamic) Check() error {
	switch {
	case !toolName().MatchString(d.Name):
		return errors.New("the name consists of 1 to 64 letters, digits, _ and -")
	case Find(d.Name) != nil || policy.KnownTool(d.Name):
		return fmt.Errorf("drover has a tool %q itself; choose another name", d.Name)
	case strings.TrimSpace(d.Doc) == "":
		return errors.New("it has no description, by which the model would know what it is for")
	case len(d.Command) > 0 && d.URL != "":
		return errors.New("it has both command and url; leave one of them out")
	case len(d.Command) == 0 && d.URL == "":
		return errors.New("it has neither command nor url")
	case len(d.Command) > 0 && len(d.Headers) > 0:
		return errors.New("headers belong to a url, not to a command")
	}
	for name, variable := range d.Headers {
		if err := checkHeader(name, variable); err != nil {
			return err
		}
	}
	if d.URL != "" {
		if _, err := parseEndpoint(d.URL); err != nil {
			return err
		}
	}
	_, _, err := d.schema()
	return err
}

var headerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") })

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

func checkHeader(name, variable string) error {
	switch strings.ToLower(name) {
	case "host", "content-length", "transfer-encoding", "connection", "content-type":
		return fmt.Errorf("the header %s is set by drover", name)
	}
	if !headerName().MatchString(name) {
		return fmt.Errorf("%q is no name of a header", name)
	}
	if !variableName().MatchString(variable) {
		return fmt.Errorf("the value of the header %s must be the name of an environment variable, so that no secret stands in the file", name)
	}
	return nil
}

// schema compiles the parameters.
func (d Dynamic) schema() (json.RawMessage, *jsonschema.Resolved, error) {
	raw := d.Parameters
	if len(raw) == 0 {
		raw = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, nil, fmt.Errorf("parameters are no JSON Schema: %w", err)
	}
	if s.Type != "object" {
		return nil, nil, errors.New("parameters must be a JSON Schema with type: object")
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("parameters are no JSON Schema: %w", err)
	}
	return raw, resolved, nil
}

// NewDynamic makes the tool. The values of headers are read here; a variable
// that is not set is an error, which names it and no value.
func NewDynamic(d Dynamic, getenv func(string) string) (Tool, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	t := &dynamic{def: d, headers: http.Header{}}
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		value := strings.TrimSpace(getenv(d.Headers[name]))
		if value == "" {
			return nil, fmt.Errorf("the environment variable %s, which holds the header %s, is not set", d.Headers[name], name)
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("the environment variable %s, which holds the header %s, has more than one line", d.Headers[name], name)
		}
		t.headers.Set(name, value)
	}
	var err error
	if t.raw, t.schema, err = d.schema(); err != nil {
		return nil, err
	}
	if d.URL != "" {
		if t.endpoint, err = parseEndpoint(d.URL); err != nil {
			return nil, err
		}
		t.client = endpointClient(t.endpoint)
	}
	return t, nil
}

// dynamic is a Dynamic that is ready to be called.
type dynamic struct {
	def      Dynamic
	raw      json.RawMessage
	schema   *jsonschema.Resolved
	headers  http.Header
	endpoint *url.URL
	client   *http.Client
}

// Spec describes the tool. It is never parallel: what it does is not known.
func (t *dynamic) Spec() Spec {
	command := t.endpoint == nil
	return Spec{
		Name: t.def.Name, Doc: strings.TrimSpace(t.def.Doc), Kind: Function, Schema: t.raw, Offered: true,
		Reads: command, Writes: command, Runs: command, Connects: true, Approval: "on-request",
	}
}

// Prepare checks the arguments against the schema before anything runs.
func (t *dynamic) Prepare(env Env, in Input) (*Call, error) {
	if in.Freeform {
		return nil, fmt.Errorf("tool %s invoked with incompatible payload", t.def.Name)
	}
	args, raw, err := decodeArgs[map[string]any](in.Text, nil, false)
	if err != nil {
		return nil, err
	}
	if err := t.schema.Validate(args); err != nil {
		return nil, &ArgumentError{Message: "they do not match the schema: " + err.Error()}
	}
	own := env.Commands.limit(t.timeout())
	call := &Call{Args: raw, Display: display(t.def.Name + ": " + string(raw)), Timeout: own}
	call.Actions = []policy.Action{policy.Tool(t.def.Name, raw)}
	if t.endpoint == nil {
		call.Actions = append(call.Actions, policy.Exec(env.Cwd, t.def.Command...))
		call.Run = func(ctx context.Context, env Env) (Result, error) { return t.execute(ctx, env, raw, own) }
		return call, nil
	}
	call.Actions = append(call.Actions, policy.Action{Kind: policy.KindHost, Host: hostPort(t.endpoint)})
	call.Run = func(ctx context.Context, env Env) (Result, error) { return t.post(ctx, env, raw, own) }
	return call, nil
}

func (t *dynamic) timeout() time.Duration {
	if t.def.Timeout > 0 {
		return t.def.Timeout
	}
	return DynamicTimeout
}

// execute runs the command with the arguments as its input. Its stdout is the
// result; stderr is only shown with a failure.
func (t *dynamic) execute(ctx context.Context, env Env, args []byte, timeout time.Duration) (Result, error) {
	streams := &split{}
	c := command{
		text: quoteArgv(t.def.Command), argv: t.def.Command, dir: env.Cwd, description: display(t.def.Name),
		timeout: env.limit(timeout), forced: plainOutput, split: true, streams: streams, input: append(slices.Clip(args), '\n'),
	}
	r, err := c.run(ctx, env)
	if err != nil {
		return startFailed(t.def.Name, c.argv, err)
	}
	if r.TimedOut || r.ExitCode != 0 {
		return t.failed(env, r), nil
	}
	text, _ := readable(streams.first[proc.Stdout], nil, 0)
	cut := !env.Output.Fits(text) || len(streams.first[proc.Stdout]) == splitCap
	res := r.result(env.Output.Cut(text), cut)
	res.Truncated = cut
	return res, nil
}

// failed tells the model how the command ended and what it said.
func (t *dynamic) failed(env Env, r CommandResult) Result {
	head := []string{fmt.Sprintf("%s failed: its command exited with code %d", t.def.Name, r.ExitCode)}
	head = append(append(head, r.notes()...), "Output:", env.Output.Formatted(r.Text))
	res := r.failed(r.result(strings.Join(head, "\n"), !env.Output.Fits(r.Text)))
	if !res.IsError {
		res.IsError, res.Code = true, "exit_code"
	}
	return res
}
