package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/output"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/session"
)

// copyName is the folder of an isolated run in the folder of its session.
const copyName = "copy"

func newSessionsCmd(a *app) *cobra.Command {
	return group("sessions", "List, show and remove what past runs have left",
		newSessionsListCmd(a), newSessionsShowCmd(a), newSessionsRmCmd(a))
}

func newSessionsListCmd(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{Use: "list", Short: "List the sessions, newest first", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return listSessions(a, format) }}
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

// sessionRow is one session as `sessions list --format json` prints it.
type sessionRow struct {
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Status   string    `json:"status"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Model    string    `json:"model"`
	Cwd      string    `json:"cwd"`
	Prompt   string    `json:"prompt"`
	Bytes    int64     `json:"bytes"`
	Dir      string    `json:"dir"`
	Problem  string    `json:"problem,omitempty"`
}

// stateDir is the folder of all sessions. Without a home there is none: a
// relative one would be looked for in the current folder.
func (a *app) stateDir() (string, error) {
	if dir := session.StateDir(a.getenv); dir != "" {
		return dir, nil
	}
	return "", &fault.Error{Code: "session_state", What: "the sessions cannot be found", Why: "neither XDG_STATE_HOME nor HOME is an absolute path",
		Fix: "set one of them", Exit: fault.Environment}
}

func listSessions(a *app, format string) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	infos, err := session.List(state)
	if err != nil {
		return err
	}
	switch format {
	case "json":
		rows := []sessionRow{}
		for _, i := range infos {
			rows = append(rows, sessionRow{ID: i.ID, Started: i.Started, Status: i.Status, ExitCode: i.ExitCode, Model: i.Model,
				Cwd: i.Cwd, Prompt: i.Prompt, Bytes: i.Bytes, Dir: i.Dir, Problem: i.Problem})
		}
		return json.NewEncoder(a.stdout).Encode(rows)
	case "text":
		return printSessions(a.stdout, infos)
	}
	return unknownFormat(format, "text", "json")
}

func printSessions(w io.Writer, infos []session.Info) error {
	if len(infos) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTARTED\tSTATUS\tEXIT\tMODEL\tPROMPT")
	for _, i := range infos {
		exit, prompt := "-", i.Prompt
		if i.ExitCode != nil {
			exit = strconv.Itoa(*i.ExitCode)
		}
		if i.Problem != "" {
			prompt = "(" + i.Problem + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Started.Local().Format("2006-01-02 15:04"),
			cell(i.Status, 14), exit, cell(i.Model, 30), cell(prompt, 60))
	}
	return t.Flush()
}

// cell makes text from a log fit for one cell of a table on a terminal.
func cell(text string, width int) string {
	text = strings.Join(strings.Fields(output.Clean(text)), " ")
	if runes := []rune(text); len(runes) > width {
		text = string(runes[:width-1]) + "…"
	}
	return text
}

func newSessionsShowCmd(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{Use: "show ID|last", Short: "Show the events of a session", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return showSession(a, args[0], format) }}
	c.Flags().StringVar(&format, "format", "lines", "how to show them: "+strings.Join(output.Names(), ", "))
	return c
}

func showSession(a *app, id, format string) (err error) {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	if id, err = session.Resolve(state, id); err != nil {
		return err
	}
	r, err := session.OpenReader(state, id)
	if err != nil {
		return err
	}
	defer r.Close()
	if format == "jsonl" {
		// The lines as they were written, also those of a later version.
		err = copyLines(a.stdout, r)
	} else {
		err = replay(a, r, format)
	}
	for _, d := range r.Damage() {
		fmt.Fprintf(a.stderr, "drover: session %s: %d bytes at offset %d are damaged and left out\n", id, d.Bytes, d.Offset)
	}
	return err
}

// eachEvent calls fn for the events of a log and passes over private records.
func eachEvent(r *session.Reader, fn func(line []byte) error) error {
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Type == "" {
			continue
		}
		if err := fn(rec.Line); err != nil {
			return err
		}
	}
}

func copyLines(w io.Writer, r *session.Reader) error {
	return eachEvent(r, func(line []byte) error {
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		return nil
	})
}

// replay hands the events of a log to a format.
func replay(a *app, r *session.Reader, format string) (err error) {
	sink, level, err := output.Open(format, a.stdout, a.look())
	if err != nil {
		return err
	}
	defer func() {
		if closing := sink.Close(); err == nil && closing != nil {
			err = fmt.Errorf("write events: %w", closing)
		}
	}()
	return eachEvent(r, func(line []byte) error {
		e, err := event.Decode(line)
		if err != nil {
			return err
		}
		if event.LevelOf(e.Body) > level {
			return nil
		}
		if err := sink.Emit(e); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		return nil
	})
}

// removal are the options of sessions rm.
type removal struct {
	all       bool
	olderThan string
	ids       []string
}

func newSessionsRmCmd(a *app) *cobra.Command {
	var o removal
	c := &cobra.Command{Use: "rm [ID...]", Short: "Remove sessions with their artifacts, copies and worktrees",
		Long: "Remove sessions with their artifacts, copies and worktrees. A session that a run is\nstill writing to is never removed; --all and --older-than pass over it.",
		RunE: func(c *cobra.Command, args []string) error {
			o.ids = args
			given := 0
			for _, is := range []bool{o.all, o.olderThan != "", len(args) > 0} {
				if is {
					given++
				}
			}
			if given != 1 {
				return usageError(c, errors.New("give either ids, or --all, or --older-than"))
			}
			return removeSessions(c.Context(), a, o)
		}}
	c.Flags().BoolVar(&o.all, "all", false, "remove all sessions")
	c.Flags().StringVar(&o.olderThan, "older-than", "", "remove sessions that started longer ago, such as 30d or 12h")
	return c
}

func removeSessions(ctx context.Context, a *app, o removal) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	if len(o.ids) > 0 {
		return removeNamed(ctx, a, state, o.ids)
	}
	var before time.Time
	if o.olderThan != "" {
		age, err := parseAge(o.olderThan)
		if err != nil {
			return err
		}
		before = time.Now().Add(-age)
	}
	infos, err := session.List(state)
	if err != nil {
		return err
	}
	var failed []error
	for _, i := range infos {
		if o.olderThan != "" && !i.Started.Before(before) {
			continue
		}
		err := removeSession(ctx, state, i.ID)
		if f := fault.From(err); f != nil && f.Code == "session_locked" {
			fmt.Fprintf(a.stderr, "drover: session %s is kept: a run is writing to it\n", i.ID)
			continue
		}
		failed = append(failed, err)
	}
	return joined(failed)
}

// removeNamed removes sessions by id. All of them must be there before the
// first one goes.
func removeNamed(ctx context.Context, a *app, state string, names []string) error {
	var ids []string
	for _, name := range names {
		id, err := session.Resolve(state, name)
		if err != nil {
			return err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	var failed []error
	for _, id := range ids {
		failed = append(failed, removeSession(ctx, state, id))
	}
	return joined(failed)
}

func removeSession(ctx context.Context, state, id string) error {
	return session.Remove(state, id, func(dir string) error {
		if err := runner.RemoveIsolation(ctx, filepath.Join(dir, copyName)); err != nil {
			return &fault.Error{Code: "session_remove", What: fmt.Sprintf("session %q cannot be removed", id), Why: err.Error(),
				Fix: "repair the repository, or delete the folder " + dir, Exit: fault.Environment, Err: err}
		}
		return nil
	})
}

// joined returns the first error and says how many more there are.
func joined(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	first := *fault.From(errs[0])
	if more := len(errs) - 1; more > 0 {
		first.Why = strings.TrimPrefix(fmt.Sprintf("%s (and %d more could not be removed)", first.Why, more), " ")
	}
	return &first
}

// parseAge reads a duration that may also be in days or weeks, such as 30d.
func parseAge(text string) (time.Duration, error) {
	unit := time.Duration(0)
	switch {
	case strings.HasSuffix(text, "d"):
		unit = 24 * time.Hour
	case strings.HasSuffix(text, "w"):
		unit = 7 * 24 * time.Hour
	}
	var age time.Duration
	var err error
	if unit > 0 {
		var n uint64
		n, err = strconv.ParseUint(text[:len(text)-1], 10, 16)
		age = time.Duration(n) * unit
	} else {
		age, err = time.ParseDuration(text)
	}
	if err != nil || age < 0 {
		return 0, &fault.Error{Code: "usage", What: fmt.Sprintf("--older-than %q cannot be used", text), Why: "it is not an age",
			Fix: "write it like 30d, 2w or 12h", Exit: fault.Usage, Err: err}
	}
	return age, nil
}
