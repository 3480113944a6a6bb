package cmd

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"syscall"

	"drover/cmd/config"
	"drover/output"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/model"
)

// attachFormats opens what --format and --out ask for. p is nil for a run that
// could not start: it says so in every output that can be opened.
func (a *app) attachFormats(log *event.Log, p *prepared) error {
	name := a.stdoutFormat()
	opts := a.look()
	sink, level, err := output.Open(name, a.stdout, opts)
	if err != nil {
		return err
	}
	a.screen, _ = sink.(output.Screen)
	if level == event.Default {
		level = eventLevel(a.run.events)
	}
	sink = output.Guard(sink, a.stdout)
	terminal := output.IsTerminal(a.stdout) // one that is closed is none any more
	log.Attach(event.Attachment{Name: name, Sink: sink, Level: level, Abandon: output.Abandon(sink),
		Failed: func(err error) {
			if terminal && errors.Is(err, syscall.EIO) {
				err = io.ErrClosedPipe // nobody is at the other end
			}
			a.stdoutFailed(p, err)
		}})
	for _, spec := range a.run.out {
		if err := attachOut(log, p, spec, opts); err != nil && p != nil {
			return err
		}
	}
	return nil
}

// stdoutFormat is the format that stdout carries.
func (a *app) stdoutFormat() string {
	if name := a.run.format; name != "" && name != "auto" {
		return name
	}
	return output.Auto(a.stdout, a.getenv)
}

// inCI tells whether the environment says that nobody is watching.
func (a *app) inCI() bool { return output.InCI(a.getenv) }

func attachOut(log *event.Log, p *prepared, spec string, opts output.Options) error {
	format, path, ok := strings.Cut(spec, ":")
	if !ok || path == "" {
		return &fault.Error{Code: "usage", What: fmt.Sprintf("--out %q cannot be used", spec), Why: "it is not FORMAT:FILE",
			Fix: "write it like --out jsonl:run.jsonl", Exit: fault.Usage}
	}
	opts.Color, opts.Width = false, 0
	sink, level, err := output.OpenFile(format, path, opts)
	if err != nil {
		return err
	}
	log.Attach(event.Attachment{Name: spec, Sink: sink, Level: level, Abandon: output.Abandon(sink), Failed: func(err error) {
		if p != nil {
			p.notice("output_lost", "the output "+spec+" cannot be written any more: "+err.Error())
		}
	}})
	return nil
}

// stdoutFailed ends the run when stdout cannot be written: quietly if its
// reader has gone away, with an error otherwise.
func (a *app) stdoutFailed(p *prepared, err error) {
	if p == nil {
		return
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		p.closedOutput.Store(true)
		if p.stopOnClosed {
			p.stop(&runner.Stop{Exit: fault.ClosedOutput, Reason: "closed_output"})
		}
		return
	}
	if errors.Is(err, output.ErrAbandoned) {
		p.gaveUp.Store(true) // the run is ending already
		return
	}
	f := outputFailed(err)
	p.failed.Store(f)
	p.stop(runner.StopFor(f))
}

func eventLevel(name string) event.Level {
	switch name {
	case "core":
		return event.Core
	case "full":
		return event.Full
	}
	return event.Default
}

func formatNames() string { return "auto, " + strings.Join(output.Names(), ", ") }

// look is how formats for people look on stdout.
func (a *app) look() output.Options {
	o := output.Options{Color: a.color(), ASCII: a.run.ascii || output.ASCII(a.stdout, a.getenv), Width: output.Width(a.stdout)}
	showAlso(&o, a.run.show)
	return o
}

// color resolves --color and NO_COLOR.
func (a *app) color() bool {
	switch a.run.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.getenv("NO_COLOR") == "" && output.IsTerminal(a.stdout)
}

// printError prints an error with the secrets of the run masked.
func (a *app) printError(f *fault.Error) {
	if a.redact != nil {
		masked := *f
		masked.What, masked.Why, masked.Fix = a.redact.String(f.What), a.redact.String(f.Why), a.redact.String(f.Fix)
		f = &masked
	}
	output.PrintError(a.stderr, f)
}

// redactor masks the given secrets; without any it still knows the shapes of
// common tokens.
func (a *app) redactor(secrets map[string]string) *event.Redactor {
	a.redact = event.NewRedactor(secrets)
	return a.redact
}

// redactNames collects the values that must never be shown: the provider's
// keys, and the variables that the config names or whose names tell.
func redactNames(cfg *config.Config, m *model.OpenedModel, environ []string) map[string]string {
	secrets := cfg.Secrets(environ, m.Secrets)
	for _, kv := range environ {
		if address, ok := strings.CutPrefix(kv, engineVar+"="); ok {
			addPassword(secrets, address)
		}
	}
	return secrets
}

// addPassword adds the password of a database's URL to the secrets.
func addPassword(secrets map[string]string, address string) {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return
	}
	if password, ok := u.User.Password(); ok && len(password) >= 4 {
		secrets[engineVar+" password"] = password
	}
}
