package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"drover/jobs/csv"
	"drover/jobs/store"
	"drover/jobs/template"
	"drover/output/event"
	"drover/output/fault"
)

// Job is a job that is ready to be run: its table is in the database.
type Job struct {
	crew   *crew
	engine *engine
	name   string
	// table is what the source was found to hold.
	table *csv.Table
	total int
	// resumed says that rows were worked on before; before counts those that had
	// ended when the job was opened.
	resumed bool
	before  counts
	// ended is how the job ended, once it has.
	ended event.JobStatus
	// done says that nothing is left to do.
	done bool
	// guards keep other jobs from the files of the result.
	guards []*os.File
	// spool is the copy of a source that can be read only once.
	spool string
}

// Check reads the table and the template and returns what is in them, without
// keeping anything. sample is called with the prompt of every row.
func Check(o Options, sample func(index int, itemID, prompt string)) (*csv.Table, error) {
	j := &Job{}
	defer j.Close()
	if err := j.spoolStdin(&o); err != nil {
		return nil, err
	}
	table, err := readTable(o, nil, nil)
	if err != nil {
		return nil, err
	}
	t, err := template.Parse(o.Spec.Instruction, table.Header)
	if err != nil {
		return nil, err
	}
	j.table, j.crew = table, &crew{opts: o, spec: &o.Spec, header: table.Header, template: t}
	j.identify(o)
	c := j.crew
	_, err = readTable(o, table.Header, func(r csv.Row) error {
		sample(r.Index, r.ID, c.prompt(r.ID, r.Values))
		return nil
	})
	return table, err
}

// Open checks the table, the template, the output and what is known of the job,
// and brings the rows into the database. It costs nothing and changes no file of
// the user's. Errors are faults with the class that says whose they are.
func Open(ctx context.Context, o Options) (_ *Job, err error) {
	j := &Job{}
	defer func() {
		if err != nil {
			j.Close()
		}
	}()
	if err := j.spoolStdin(&o); err != nil {
		return nil, err
	}
	if j.table, err = tableOf(ctx, o); err != nil {
		return nil, err
	}
	j.total = j.table.Rows
	j.crew = newCrew(o, &o.Spec, "", j.table.Header)
	if err := j.crew.compiled(); err != nil {
		return nil, err
	}
	j.identify(o)
	if err := j.claimOutput(); err != nil {
		return nil, err
	}
	if j.crew.store, err = openStore(ctx, o, j.crew.jobID, true); err != nil {
		return nil, err
	}
	j.crew.worker = workerID(o.Base.SessionID)
	if j.engine, err = newEngine(j.crew.store, j.crew.worker); err != nil {
		return nil, err
	}
	if err := j.load(ctx, o); err != nil {
		return nil, err
	}
	return j, nil
}

// tableOf is the table of the job: what the source holds now, or what the
// database has where the source cannot be read twice.
func tableOf(ctx context.Context, o Options) (*csv.Table, error) {
	if o.JobID == "" || o.Spec.SourcePath != "-" {
		return readTable(o, nil, nil)
	}
	o.Restart = false
	s, err := openStore(ctx, o, o.JobID, false)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	job, err := s.Job(ctx, o.JobID)
	if err != nil || job == nil {
		return nil, fmt.Errorf("read job %s: %w", o.JobID, err)
	}
	return &csv.Table{Header: job.Header, Rows: job.Total, SHA256: job.SourceSHA256}, nil
}

// openStore opens the database of the job.
func openStore(ctx context.Context, o Options, jobID string, work bool) (*store.Store, error) {
	if o.Engine != "" {
		return store.OpenPostgres(ctx, o.Engine)
	}
	dir := Folder(o.State, jobID)
	if o.Restart {
		if err := store.Forget(dir); err != nil {
			return nil, err
		}
	}
	return store.OpenFolder(ctx, dir, work)
}

// Folder is where an embedded job lies.
func Folder(state, jobID string) string { return filepath.Join(state, "jobs", jobID) }

// spoolStdin copies a source that can be read only once into a file.
func (j *Job) spoolStdin(o *Options) error {
	if o.Spec.SourcePath != "-" || o.Source == nil || o.JobID != "" {
		return nil
	}
	in, err := o.Source()
	if err != nil {
		return err
	}
	defer in.Close()
	dir := filepath.Join(o.State, "jobs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return spoolFault(err)
	}
	f, err := os.CreateTemp(dir, "stdin-*")
	if err != nil {
		return spoolFault(err)
	}
	j.spool = f.Name()
	if _, err = io.Copy(f, in); err == nil {
		err = f.Close()
	}
	if err != nil {
		return spoolFault(err)
	}
	path := j.spool
	o.Source = func() (io.ReadCloser, error) { return os.Open(path) }
	return nil
}

func spoolFault(err error) error {
	return &fault.Error{Code: "source_unreadable", What: "standard input cannot be kept", Why: err.Error(), Exit: fault.Environment, Err: err}
}

// readTable reads the source once.
func readTable(o Options, header []string, each func(csv.Row) error) (*csv.Table, error) {
	open := o.Source
	if open == nil {
		open = func() (io.ReadCloser, error) { return os.Open(o.Spec.SourcePath) }
	}
	in, err := open()
	if err != nil {
		return nil, &fault.Error{Code: "source_unreadable", What: fmt.Sprintf("the table %q cannot be read", o.Spec.SourcePath), Why: reason(err), Exit: fault.Usage, Err: err}
	}
	defer in.Close()
	name := o.Spec.SourcePath
	if name == "-" {
		name = "standard input"
	}
	delimiter, _ := utf8.DecodeRuneInString(o.Spec.Delimiter)
	if o.Spec.Delimiter == "" {
		delimiter = 0
	}
	return csv.Read(in, csv.Options{Name: name, Format: o.Spec.Format, Delimiter: delimiter, IDColumn: o.Spec.IDColumn, Header: header}, each)
}

func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// identify finds the job's id and where its result goes.
func (j *Job) identify(o Options) {
	c := j.crew
	key := "paths\x00" + realPath(c.spec.SourcePath) + "\x00" + realPath(c.spec.OutputPath)
	switch {
	case o.Fresh:
		key = "session\x00" + o.NewSessionID()
	case o.Name != "":
		key = "name\x00" + o.Name
	case c.spec.SourcePath == "-":
		key = "stdin\x00" + j.table.SHA256 + "\x00" + realPath(c.spec.OutputPath)
	}
	sum := sha256.Sum256([]byte(key))
	c.jobID = cmp.Or(o.JobID, hex.EncodeToString(sum[:8]))
	if c.spec.OutputPath == "" {
		c.spec.OutputPath = defaultOutput(c.spec.SourcePath, c.jobID)
	}
	if c.opts.PatchDir == "" {
		c.opts.PatchDir = strings.TrimSuffix(c.spec.OutputPath, filepath.Ext(c.spec.OutputPath)) + ".patches"
	}
	if c.isolated() {
		c.spec.PatchDir = c.opts.PatchDir
	}
	if j.name = o.Name; j.name == "" {
		j.name = "agent-job-" + c.jobID[:8]
	}
}

// defaultOutput is beside the table, or in the current folder for one that has
// no place.
func defaultOutput(source, jobID string) string {
	dir, stem := ".", "stdin"
	if source != "-" {
		dir = filepath.Dir(source)
		stem = strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))
	}
	path := filepath.Join(dir, stem+".agent-job-"+jobID[:8]+".csv")
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// realPath follows links as far as the path exists.
func realPath(path string) string {
	if path == "" || path == "-" {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// claimOutput makes sure that the result can be written and is no other job's.
// The lock ends with the process.
func (j *Job) claimOutput() error {
	if j.crew.opts.WriteTo != "" {
		return nil // the agent's own bounds apply where it is moved to
	}
	out := j.crew.spec.OutputPath
	bad := func(why, fix string, err error) error {
		return &fault.Error{Code: "output_path", What: fmt.Sprintf("the output %q cannot be used", out), Why: why, Fix: fix, Exit: fault.Usage, Err: err}
	}
	source := j.crew.spec.SourcePath
	for _, path := range []string{out, linesPath(out), j.crew.opts.JUnit} {
		if path == "" {
			continue
		}
		if source != "-" && samePlace(path, source) {
			return bad("it is the table itself, which would be lost", "name another file with -o", nil)
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return bad(path+" is not a regular file", "name another file with -o", nil)
		}
		dir := filepath.Dir(realPath(path))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return bad(reason(err), "name a file in a folder that can be written", err)
		}
		probe, err := os.CreateTemp(dir, ".drover-*")
		if err != nil {
			return bad("its folder cannot be written: "+reason(err), "name a file in a folder that can be written", err)
		}
		_ = probe.Close()           // it is empty
		_ = os.Remove(probe.Name()) // as above
	}
	if lines := linesPath(out); !ofJob(lines) {
		return bad(lines+" is beside it and would be overwritten, and it is no result of a job", "move that file, or name another output with -o", nil)
	}
	if junit := j.crew.opts.JUnit; junit != "" && (samePlace(junit, out) || samePlace(junit, linesPath(out))) {
		return bad("it is also the file of --junit", "name two files", nil)
	}
	return j.lockOutput(bad)
}

// ofJob tells whether the JSON lines at path are the result of a job, so that
// they can be written anew. A file that is not there, or empty, is nobody's.
func ofJob(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	defer f.Close()
	var first struct {
		JobID  string `json:"job_id"`
		ItemID string `json:"item_id"`
	}
	err = json.NewDecoder(io.LimitReader(f, 64<<20)).Decode(&first)
	return errors.Is(err, io.EOF) || err == nil && first.JobID != "" && first.ItemID != "" || errors.Is(err, io.ErrUnexpectedEOF)
}

// lockOutput takes the files of the result for this job. Another job may have
// named one of them as its table and the other as its lines.
func (j *Job) lockOutput(bad func(why, fix string, err error) error) error {
	unusable := func(err error) error {
		return &fault.Error{Code: "job_database", What: "the state folder cannot be used", Why: err.Error(), Exit: fault.Environment, Err: err}
	}
	locks := filepath.Join(j.crew.opts.State, "jobs", "outputs")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		return unusable(err)
	}
	out := j.crew.spec.OutputPath
	for _, path := range []string{out, linesPath(out)} {
		sum := sha256.Sum256([]byte(realPath(path)))
		f, free, err := store.LockFile(filepath.Join(locks, hex.EncodeToString(sum[:8])))
		if err != nil {
			return unusable(err)
		}
		if !free {
			return &fault.Error{Code: "job_locked", What: fmt.Sprintf("the output %q cannot be used", out), Why: "another drover writes " + path + " now",
				Fix: "wait for that job (drover jobs list), or name another file with -o", Exit: fault.Session}
		}
		j.guards = append(j.guards, f)
		// Whose output it is stays known after the process: a job that can be
		// continued does not lose its file to another.
		owner := make([]byte, 64)
		n, _ := f.ReadAt(owner, 0)
		if was := string(owner[:n]); was != "" && was != j.crew.jobID && j.unfinished(was) {
			return bad(path+" belongs to job "+was+", which is not finished", "finish that job (drover jobs status "+was+"), cancel it, or name another file with -o", nil)
		}
		if err := f.Truncate(0); err != nil {
			return unusable(err)
		}
		if _, err := f.WriteAt([]byte(j.crew.jobID), 0); err != nil {
			return unusable(err)
		}
	}
	return nil
}

// unfinished tells whether the job of that id can still be continued.
func (j *Job) unfinished(id string) bool {
	if j.crew.opts.Engine != "" {
		return false // the lock is all that is known on this machine
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := store.OpenFolder(ctx, Folder(j.crew.opts.State, id), false)
	if err != nil {
		return false
	}
	defer s.Close()
	job, err := s.Job(ctx, id)
	return err == nil && job != nil && job.Open()
}

func samePlace(a, b string) bool {
	if realPath(a) == realPath(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// load brings the table into the database, or finds it there.
func (j *Job) load(ctx context.Context, o Options) error {
	c := j.crew
	if o.Engine != "" && o.Restart {
		if err := c.store.Remove(ctx, c.jobID); err != nil {
			return fmt.Errorf("forget job %s: %w", c.jobID, err)
		}
	}
	was, err := c.store.Job(ctx, c.jobID)
	if err != nil {
		return fmt.Errorf("read job %s: %w", c.jobID, err)
	}
	if was != nil {
		j.resumed = true
		if err := j.compare(was, o); err != nil {
			return err
		}
	}
	if was == nil || was.SourceSHA256 != j.table.SHA256 || was.Status == "cancelled" || len(o.Retry) > 0 || !sameSpec(was.Spec, c.spec) {
		if err := j.store(ctx, was, o); err != nil {
			return err
		}
	}
	return j.count(ctx)
}

// compare refuses to go on with a job of which the user has changed what its
// finished rows depend on.
func (j *Job) compare(was *store.Job, o Options) error {
	old, err := decodeSpec(was.Spec)
	if err != nil {
		return err
	}
	if changed := j.crew.spec.changed(old); len(changed) > 0 && !o.AsIs {
		return &fault.Error{Code: "job_changed", What: fmt.Sprintf("job %s cannot be continued", j.crew.jobID),
			Why: strings.Join(changed, " and ") + " changed since it was begun; its finished rows are of the old one",
			Fix: "start anew with --restart, or keep the finished rows with --as-is", Exit: fault.Usage}
	}
	return nil
}

func sameSpec(raw json.RawMessage, s *Spec) bool {
	now, err := json.Marshal(s)
	return err == nil && sameJSON(raw, now)
}

// store writes the job and its rows, all or nothing.
func (j *Job) store(ctx context.Context, was *store.Job, o Options) error {
	c := j.crew
	spec, err := json.Marshal(c.spec)
	if err != nil {
		return err
	}
	job := &store.Job{ID: c.jobID, Name: j.name, Spec: spec, Header: j.table.Header, SourceSHA256: j.table.SHA256, Total: j.table.Rows, Status: "pending"}
	return c.store.Tx(ctx, func(tx *sql.Tx) error {
		if err := c.store.PutJob(ctx, tx, job); err != nil {
			return fmt.Errorf("write job %s: %w", c.jobID, err)
		}
		again := o.Retry
		if was != nil && was.Status == "cancelled" && len(again) == 0 {
			again = []string{"cancelled"} // whoever runs a cancelled job again wants its rows
		}
		if was != nil && len(again) > 0 {
			if _, err := c.store.Again(ctx, tx, c.jobID, again...); err != nil {
				return err
			}
		}
		if was == nil || was.SourceSHA256 != j.table.SHA256 {
			if err := j.loadRows(ctx, tx, o); err != nil {
				return err
			}
		}
		return j.engine.enqueue(ctx, tx, c.jobID)
	})
}

func (j *Job) loadRows(ctx context.Context, tx *sql.Tx, o Options) error {
	l, err := j.crew.store.Load(ctx, tx, j.crew.jobID)
	if err != nil {
		return err
	}
	head, err := json.Marshal(j.table.Header)
	if err != nil {
		return err
	}
	again, err := readTable(o, j.table.Header, func(r csv.Row) error {
		row := &store.Row{ItemID: r.ID, SourceID: r.SourceID, Index: r.Index, Cells: r.Values, SHA256: rowHash(head, r.Values)}
		if r.TooBig != nil {
			row.Problem = fmt.Sprintf("line %d, column %q: the cell has %d bytes, more than the %d allowed", r.Line, r.TooBig.Column, r.TooBig.Bytes, csv.DefaultMaxCell)
		}
		return l.Add(ctx, row)
	})
	if err != nil {
		return fmt.Errorf("load rows: %w", err)
	}
	if again.SHA256 != j.table.SHA256 {
		return &fault.Error{Code: "source_changed", What: fmt.Sprintf("the table %q cannot be used", j.crew.spec.SourcePath), Why: "it changed while it was read",
			Fix: "run the job again when nobody writes it", Exit: fault.Environment, Retryable: true}
	}
	return l.Finish(ctx, tx)
}

// rowHash is the hash of a row with the names of its columns.
func rowHash(head []byte, cells []string) string {
	h := sha256.New()
	h.Write(head)
	for _, cell := range cells {
		fmt.Fprintf(h, "\n%d:%s", len(cell), cell)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// count reads how far the job is, and puts the queue in order where a kill has
// left it otherwise.
func (j *Job) count(ctx context.Context) error {
	c := j.crew
	by, err := c.store.Counts(ctx, c.jobID)
	if err != nil {
		return fmt.Errorf("count the rows of job %s: %w", c.jobID, err)
	}
	c.counts = counted(by)
	j.before = c.counts
	j.resumed = j.resumed && j.table.Rows > 0
	cost, err := c.store.Cost(ctx, c.jobID)
	if err != nil {
		return fmt.Errorf("read the cost of job %s: %w", c.jobID, err)
	}
	if cost != nil {
		c.budget.set(*cost)
	}
	j.done = c.counts.pending == 0 && c.counts.running == 0
	if j.done {
		return nil
	}
	queued, err := c.store.Queued(ctx, c.jobID)
	if err != nil {
		return fmt.Errorf("read the queue of job %s: %w", c.jobID, err)
	}
	if queued >= c.counts.pending {
		return nil
	}
	return c.store.Tx(ctx, func(tx *sql.Tx) error { return j.engine.enqueue(ctx, tx, c.jobID) })
}

// counted sums the rows by how they count.
func counted(by map[string]int) counts {
	var c counts
	for status, n := range by {
		switch status {
		case "pending":
			c.pending += n
		case "running":
			c.running += n
		default:
			*c.of(event.JobItemStatus(status)) += n
		}
	}
	return c
}

// ID is the job's id.
func (j *Job) ID() string { return j.crew.jobID }

// OutputPath is where the result goes.
func (j *Job) OutputPath() string { return j.crew.spec.OutputPath }

// Close frees what Open took. The job stays in its database.
func (j *Job) Close() {
	if j.crew != nil && j.crew.store != nil {
		_ = j.crew.store.Close() // every change was committed
	}
	for _, f := range j.guards {
		_ = f.Close() // as above
	}
	if j.spool != "" {
		_ = os.Remove(j.spool) // a copy
	}
}
