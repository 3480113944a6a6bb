// Package tools holds what an agent can do.
//
// A Tool describes itself to the model and prepares calls: it decodes the
// arguments, says in one line what will happen, and declares the actions that
// the policy has to judge. Only a call that was allowed is run. A tool is one
// file: definition, input type, run function, helpers; All is the one list.
// Engines (patches, search, policy, processes) are sub-packages that know
// nothing of tools.
//
// Tools never print. What they do is reported through Env.Emit as events, and
// what they found is their Result. They run commands and change files, and
// therefore write to the disk, but only through Env.
package tools

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"drover/output/event"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// Tool is something a model may call.
type Tool interface {
	// Spec describes the tool. It is cheap after the first call.
	Spec() Spec
	// Prepare decodes a call without doing anything. Its error is a sentence
	// for the model that says what to send instead.
	Prepare(env Env, in Input) (*Call, error)
}

// Kind is the wire shape of a tool.
type Kind string

// The kinds of tools.
const (
	Function Kind = "function"
	Freeform Kind = "freeform"
	// LocalShell is the command tool that one API has itself, and a function to
	// all others.
	LocalShell Kind = "local_shell"
)

// Spec is a tool as the model, the policy and the manual see it.
type Spec struct {
	Name string
	// Doc is what the model reads.
	Doc  string
	Kind Kind
	// Schema is the JSON Schema of a function's arguments.
	Schema json.RawMessage
	// Grammar is the Lark grammar of a freeform tool's input.
	Grammar string
	// Parallel calls may overlap each other; every other call runs alone.
	Parallel bool
	// Offered tells whether the model sees the tool without being asked for;
	// a tool that is not offered can still be called by name.
	Offered bool
	// Command marks the tools of which one is offered per model (shell).
	Command bool
	// With names the command tool without which this one is not offered; empty
	// for a tool that stands by itself.
	With string
	// Asks marks tools that are offered only when somebody, or a prepared
	// answer, can answer them.
	Asks bool
	// Permits marks those of them that ask for permissions, which no prepared
	// answer can give.
	Permits bool
	// Reads, Writes, Runs and Connects are the columns of the catalogue:
	// reads files, writes files, runs commands, uses the network.
	Reads, Writes, Runs, Connects bool
	// Approval is the default approval of the catalogue.
	Approval string
}

// Input is what the model sent for a call.
type Input struct {
	// Text is JSON arguments, or the input itself if Freeform.
	Text     string
	Freeform bool
}

// Call is one prepared call.
type Call struct {
	// Display says what happens in one line, "verb object: value", without
	// secrets, at most 200 bytes.
	Display string
	// Args are the arguments as parsed, for the event; never nil.
	Args json.RawMessage
	// Actions are what the policy judges. A tool without outside effect
	// declares none.
	Actions []policy.Action
	// Timeout bounds the call, for tool.status; 0 is none.
	Timeout time.Duration
	// Wants is what the model asks for beyond the sandbox; nil is nothing.
	Wants *Wants
	// Run does it. A Go error means that the tool itself is broken or the run
	// is ending; what the model should know is a Result.
	Run func(ctx context.Context, env Env) (Result, error)
}

// Result is what a call found.
type Result struct {
	// Text is what the model reads.
	Text string
	// IsError marks a failure the model should react to.
	IsError bool
	// Code is the stable code of a failure, such as "timeout".
	Code string
	// Display is one line for people: "exit 0, 12 lines".
	Display string
	// Summary is one more line for people, if it says more than Display.
	Summary string
	// Structured is the result as data, if it has a useful form.
	Structured any
	// ExitCode is that of the command that the call ran, nil if it ran none;
	// -1 is a death by signal.
	ExitCode *int
	// OutputBytes is the size of the whole output before it was cut.
	OutputBytes int64
	// Truncated says that Text is shorter than what was found.
	Truncated bool
	// Refusals are what the sandbox seems to have refused. Text names them
	// already.
	Refusals []sandbox.Refusal
	// Artifact is the full output, if it was kept in a file.
	Artifact *event.Artifact
	// Final says that the agent's work is done with this call: the model is
	// not asked again.
	Final bool
}

// Wants is what a call asks for beyond the sandbox of the run. It is granted by
// somebody who answers, or not at all.
type Wants struct {
	sandbox.Rights
	// Justification is the model's reason, PrefixRule the words of the command
	// that it would like to have allowed for good.
	Justification string
	PrefixRule    []string
}

// Fail returns a failed result that says text.
func Fail(code, text string) Result {
	return Result{Text: text, IsError: true, Code: code, Display: firstLine(text)}
}

// Env is what a tool may ask of the engine during one call.
type Env struct {
	// Cwd is the session's folder, absolute.
	Cwd string
	// Files is the file system, bounded by the writable roots.
	Files *Files
	// CallID and ToolName are those of the call.
	CallID, ToolName string
	// Emit reports an event of this call. It may be called concurrently, and
	// is never nil.
	Emit func(event.Body)
	// Judge asks the policy about one more action, for what a call finds only
	// while it runs; nil allows everything. It is safe for concurrent use.
	Judge func(policy.Action) policy.Verdict
	// Planning says that the run only makes a plan and changes nothing.
	Planning bool
	// Answers returns the answer that was given in advance for a question; nil
	// means that there are none.
	Answers func(id string) (label string, ok bool)
	// Ask has somebody answer a question that has just been reported as
	// input.requested; nil means that nobody can. An error means that there is
	// no answer.
	Ask func(ctx context.Context, correlationID string) (text string, by event.Decider, err error)
	// Permit asks for permissions for later calls and returns what was granted,
	// and whether for the turn or the session; nil means that nobody can be
	// asked. Its error is a sentence for the model.
	Permit func(ctx context.Context, want sandbox.Rights, reason string) (granted sandbox.Rights, scope string, err error)
	// Output bounds the text that goes back to the model.
	Output Limit
	// Commands are the settings for running commands.
	Commands Commands
	// Rights are what the commands of this call may do beyond the sandbox of
	// the run, because a rule or an answer says so.
	Rights sandbox.Rights
	// Timeout is the limit that the policy sets for the call; 0 is none.
	Timeout time.Duration
	// Approval is the approval policy in force (untrusted, on-failure,
	// on-request, never, granular), or empty.
	Approval string
	// MoneyLeft is what the run may still spend in US dollars, and whether that
	// is limited. Charge adds what the call has spent through agents of its own.
	MoneyLeft func() (usd float64, limited bool)
	Charge    func(Spent)
	// Artifact opens a file of the session for something large; nil, or an
	// error, means that there is no place for it.
	Artifact func(name string) (ArtifactWriter, error)
}

// Spent is what a call has used through agents of its own.
type Spent struct {
	Usage     event.Usage
	ByModel   map[string]event.Usage
	Turns     int
	ToolCalls map[string]int
	Denials   []event.Denial
}

// ArtifactWriter is a file of the session that grows. Secrets are masked on the
// way. Either Finish or Abort ends it.
type ArtifactWriter interface {
	io.Writer
	Finish() (event.Artifact, error)
	Abort()
}

// All returns the built-in tools in the order in which they are offered.
func All() []Tool { return append([]Tool(nil), builtin...) }

// Find returns the built-in tool of that name, or nil. Names that only other
// products use are answered too.
func Find(name string) Tool {
	if real, ok := aliases[name]; ok {
		name = real
	}
	for _, t := range builtin {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

// aliases are names under which models know tools of ours.
var aliases = map[string]string{
	"container.exec": "shell",
	"applypatch":     "apply_patch",
}
