package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"drover/cmd/config"
	"drover/output"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/approver"
	"drover/tools"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// generatedName is the user's file for answers that hold for good.
const generatedName = "policy.generated.yaml"

// approvalOptions are the flags about who answers.
type approvalOptions struct {
	approver, socket  string
	fd                int
	timeout           time.Duration
	allowPolicyWrites bool
}

func (o *approvalOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.approver, "approver", "", "command that answers each request: the request as a JSON line on its stdin, the answer on its stdout")
	f.IntVar(&o.fd, "approvals-fd", 0, "open descriptor on which answers come, a JSON line each; if it is a socket, requests are sent on it")
	f.StringVar(&o.socket, "approvals-socket", "", "Unix socket to listen on for programs that answer")
	f.DurationVar(&o.timeout, "approval-timeout", 0, "refuse a request that nobody has answered for this long (default 5m)")
	f.BoolVar(&o.allowPolicyWrites, "allow-policy-writes", false, "let the answer \"always\" write a rule to the user's "+generatedName)
}

// approvals are who answers, after flags and config.
type approvals struct {
	approver, socket  string
	fd                int
	timeout           time.Duration
	allowPolicyWrites bool
	// tty says that the person at the terminal is asked.
	tty bool
	// program is the file that the approver's command runs, if it is known.
	program string
}

// settleApprovals decides who answers, and what on_ask is when neither a flag
// nor the config says so: a way to answer means that it is used.
func (a *app) settleApprovals(o *runOptions, cfg *config.Config, s *settings) error {
	given := o.approvals
	ap := approvals{
		approver: given.approver, socket: given.socket, fd: given.fd, allowPolicyWrites: given.allowPolicyWrites,
		timeout: cfg.ApprovalTimeout,
	}
	if given.timeout > 0 {
		ap.timeout = given.timeout
	}
	approver.KeepFromChildren(ap.fd) // before anything is started
	ways := 0
	for _, flag := range []string{"approver", "approvals-fd", "approvals-socket"} {
		if o.set(flag) {
			ways++
		}
	}
	if ways > 1 {
		return &fault.Error{Code: "usage", What: "the flags for approvals cannot be used together", Why: "a request goes to one approver",
			Fix: "give one of --approver, --approvals-fd and --approvals-socket", Exit: fault.Usage}
	}
	for flag, value := range map[string]string{"approver": ap.approver, "approvals-socket": ap.socket} {
		if o.set(flag) && strings.TrimSpace(value) == "" {
			return &fault.Error{Code: "usage", What: "--" + flag + " cannot be used", Why: "it is empty", Fix: "give a value, or leave it out", Exit: fault.Usage}
		}
	}
	if ways == 0 {
		ap.approver = cfg.Approver
	}
	ap.program = a.approverProgram(ap.approver)
	transport := ways > 0 || ap.approver != ""
	ap.tty = !transport && a.personCanAnswer()
	switch {
	case s.onAsk == "" && (transport || ap.tty):
		s.onAsk = string(policy.AskApprover)
	case s.onAsk == string(policy.AskApprover) && !transport && !ap.tty:
		return &fault.Error{Code: "usage", What: "on_ask: approver cannot be used", Why: "there is no approver",
			Fix: "give --approver, --approvals-fd or --approvals-socket, or use --on-ask deny", Exit: fault.Usage}
	}
	// --yolo asks nobody. Neither does a run that has another way to settle
	// what the policy asks.
	if o.yolo {
		ap = approvals{timeout: ap.timeout}
	}
	s.approvals = ap
	return nil
}

// approverProgram is the file that the approver's command runs, "" if that
// cannot be known without running it. The agent must not change it.
func (a *app) approverProgram(command string) string {
	dir, err := os.Getwd()
	if err != nil || command == "" {
		return ""
	}
	program, missing := hookFinder{cwd: dir, home: a.getenv("HOME"), look: lookPath(a.getenv("PATH"))}.program(command)
	if missing {
		return ""
	}
	return program
}

// personCanAnswer tells whether somebody sits at the terminal: the output is
// for people, questions are seen there, and there is a terminal to read from.
func (a *app) personCanAnswer() bool {
	name := a.stdoutFormat()
	if name != "lines" && name != "frames" {
		return false
	}
	if !output.IsTerminal(a.stderr) && !(name == "frames" && output.IsTerminal(a.stdout)) {
		return false
	}
	if output.IsTerminal(a.stdin) {
		return true
	}
	// A pipe may carry the task; the person types at the terminal all the same.
	// Where CI says so, a terminal is there for colours only.
	if name != "frames" || a.inCI() {
		return false
	}
	return a.controllingTerminal() != nil
}

// controllingTerminal opens the terminal that the process belongs to, once; it
// is nil if there is none. It stays open until the process ends.
func (a *app) controllingTerminal() *os.File {
	if a.terminal == nil {
		if f, err := os.OpenFile(terminalName, os.O_RDWR, 0); err == nil {
			a.terminal = f
		}
	}
	return a.terminal
}

// terminalApprover asks the person at the terminal.
func (a *app) terminalApprover(p *prepared, ap approvals) approver.Approver {
	from := a.stdin
	if !output.IsTerminal(from) {
		from = a.controllingTerminal()
	}
	return approver.Terminal(approver.TerminalOptions{
		Lines: approver.Lines(from), Always: ap.allowPolicyWrites,
		Hold: func() (io.Writer, func()) {
			if a.screen != nil {
				return a.screen.Hold()
			}
			return a.stderr, func() {}
		},
		Show: func(e event.Event, n, of int, session, always bool) (rows, all []string) {
			look := a.look()
			q := output.NewQuestion(e, output.QuestionOptions{
				Columns: look.Width, ASCII: look.ASCII, N: n, Of: of, Session: session, Always: always,
				Folder: p.options.Started.Cwd, Home: a.getenv("HOME"),
			})
			return q.Rows, q.All
		},
	})
}

// openApprover opens the way to whoever answers.
func (a *app) openApprover(p *prepared, in inputs) (err error) {
	ap := in.settings.approvals
	p.options.Approvals = runner.Approvals{Timeout: ap.timeout, Resume: a.resumeHint(p)}
	switch {
	case ap.socket != "":
		p.asker, err = approver.Socket(ap.socket, ofThisRun(p.log.RunID()), p.notice)
	case a.run.set("approvals-fd") && ap.fd != 0:
		p.asker, err = approver.Descriptor(ap.fd, p.notice)
	case ap.approver != "":
		p.asker = approver.Command(a.approverCommand(p, in))
	case ap.tty:
		p.asker = a.terminalApprover(p, ap)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	o := &p.options
	o.Approvals.Asker = p.asker
	if path := generatedPolicy(a.getenv); ap.allowPolicyWrites && path != "" {
		o.Approvals.Generate = func(rule policy.Proposal, correlationID string) error {
			return in.policy.AppendGenerated(path, rule, correlationID)
		}
	}
	o.Started.Capabilities = append(o.Started.Capabilities, "approvals")
	return nil
}

// approverCommand runs the approver's command: in the caller's folder, outside
// the agent's sandbox, and without the keys of providers. A program that the
// agent could have put in the place of the first one is not run.
func (a *app) approverCommand(p *prepared, in inputs) approver.Exec {
	ap, first := in.settings.approvals, ""
	if ap.program != "" && a.agentCanWrite(p, in, ap.program) {
		first, _ = fileSum(ap.program) // one that cannot be read cannot be compared
	}
	return func(ctx context.Context, input []byte) (approver.Output, error) {
		if first != "" {
			if now, err := fileSum(ap.program); err != nil || now != first {
				return approver.Output{}, fmt.Errorf("its program %s was changed during the run", ap.program)
			}
		}
		dir, err := os.Getwd()
		if err != nil {
			return approver.Output{}, fmt.Errorf("find the current folder: %w", err)
		}
		r, err := tools.RunHook(ctx, p.options.Commands, tools.HookCommand{
			Script: ap.approver, Dir: dir, Input: input, Rights: sandbox.Rights{Off: true},
		})
		if err != nil {
			return approver.Output{}, err
		}
		return approver.Output{
			ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut || r.Canceled, Stdout: r.Stdout, Stderr: r.Stderr, Cut: r.Cut,
		}, nil
	}
}

// resumeHint is what a deferred run can be taken up with: a command if this
// version has it, the session's id if not, and nothing if none is kept.
func (a *app) resumeHint(p *prepared) string {
	switch {
	case p.session.IsEphemeral():
		return ""
	case a.run.has("resume"):
		return "drover run --resume " + p.session.ID()
	}
	return p.session.ID()
}

// ofThisRun tells whether a process was started by the run: it is a child of
// this process, or carries the run's mark. One that is gone already, or cannot
// be looked at, could be anybody.
func ofThisRun(runID string) func(pid int) bool {
	self := os.Getpid()
	mark := "DROVER_RUN_ID=" + runID
	return func(pid int) bool {
		if environ, err := os.ReadFile(procFile(pid, "environ")); err == nil {
			for entry := range strings.SplitSeq(string(environ), "\x00") {
				if entry == mark {
					return true
				}
			}
		}
		for at := pid; at > 1; {
			parent, ok := parentOf(at)
			if !ok || at == self || parent == self {
				return true
			}
			at = parent
		}
		return false
	}
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// parentOf reads the parent of a process.
func parentOf(pid int) (parent int, ok bool) {
	data, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0, false
	}
	// The name in brackets may hold anything; the fields follow the last one.
	_, rest, found := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil
}

// generatedPolicy is the user's file of answers that hold for good, "" without a
// home.
func generatedPolicy(getenv func(string) string) string {
	home := config.Home(getenv)
	if home == "" {
		return ""
	}
	return filepath.Join(home, generatedName)
}
