package board

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"drover/output/event"
	"drover/output/internal/term"
)

// Job is a list job as a person sees it: one frame, whatever the number of its
// rows. Rows and their calls have no frames.
type Job struct {
	ID, Source string
	// Total are all rows; Running to Skipped count them, each by its last
	// attempt. What is left over has not been begun.
	Total, Running, Completed, Failed, Skipped int
	CostUSD                                    float64
	// ETA is how long the rest will take, as the stream has it; it is negative
	// until a row is finished.
	ETA time.Duration
	// End is its last event, nil while it is open or when its stream was cut.
	End  *event.JobFinishedEvent
	Took time.Duration

	// began is when it began, seen is the time of its latest event.
	began, seen time.Time
	final       bool
	// finished counts rows since the job began, for the rate.
	finished int
	// rows are those that are being worked on.
	rows map[string]*jobRow
	// failed are the rows that failed for good, by their number in the table;
	// newest is the last of them, noted counts those that got a remark.
	failed map[string]int
	newest jobFailure
	noted  int
	// printed and printedAt are how many rows were done, and when, at the last
	// row about it in a format that does not draw.
	printed   int
	printedAt time.Time
}

// jobRow is a row that is being worked on.
type jobRow struct {
	id    string
	index int
	began time.Time
	// session is the row's own; those of agents that it spawns are others.
	session string
	// doing is its latest call, if that has no result.
	doing *Frame
}

type jobFailure struct {
	index   int
	id, why string
}

const (
	// maxFailures is how many failed rows get a row in history.
	maxFailures = 20
	// maxWhy is how much of an error is kept to say why a row failed.
	maxWhy = 1 << 10
)

// Done counts the rows that need no more work.
func (j *Job) Done() int { return j.Completed + j.Failed + j.Skipped }

// Pending counts the rows that nobody has begun.
func (j *Job) Pending() int { return max(0, j.Total-j.Done()-j.Running) }

// takeJob takes the events of jobs and of their rows. It tells whether the event
// was one.
func (b *Board) takeJob(e event.Event) bool {
	switch body := e.Body.(type) {
	case event.JobStartedEvent:
		if b.jobs[body.JobID] == nil {
			b.startJob(e, body)
		}
	case event.JobItemStartedEvent:
		b.job(e, body.JobID).startRow(e, body)
	case event.JobItemFinishedEvent:
		b.endRow(e, body)
	case event.JobProgressEvent:
		b.job(e, body.JobID).progress(body)
	case event.JobFinishedEvent:
		b.job(e, body.JobID).finish(body)
	default:
		if e.ItemID == "" {
			return false
		}
		b.rowDoes(e)
	}
	return true
}

// job returns the job that an event is about. One that nobody announced begins
// now.
func (b *Board) job(e event.Event, id string) *Job {
	j := b.jobs[id]
	if j == nil {
		j = b.startJob(e, event.JobStartedEvent{JobID: id})
	}
	j.seen = e.Time
	return j
}

func (b *Board) startJob(e event.Event, s event.JobStartedEvent) *Job {
	j := &Job{
		ID: s.JobID, Source: path.Base(s.Source.Path), Total: s.Total, Skipped: s.Skipped,
		ETA: -1, began: e.Time, seen: e.Time,
		rows: map[string]*jobRow{}, failed: map[string]int{}, printed: -1,
	}
	if s.Source.Path == "" {
		j.Source = s.JobID
	}
	if b.jobs == nil {
		b.jobs = map[string]*Job{}
	}
	b.jobs[s.JobID] = j
	b.lane(failureLane(s.JobID)) // its rows come before the end of the job
	b.add(jobLane(s.JobID), &entry{job: j})
	return j
}

// jobLane and failureLane are the lanes of a job, which belong to no session.
func jobLane(id string) string     { return "\x00job " + id }
func failureLane(id string) string { return "\x00rows " + id }

func (j *Job) startRow(e event.Event, s event.JobItemStartedEvent) {
	if j.final {
		return
	}
	if _, ok := j.failed[e.ItemID]; ok { // it counts by this attempt now
		delete(j.failed, e.ItemID)
		j.Failed, j.finished = max(0, j.Failed-1), j.finished-1
	}
	if j.rows[e.ItemID] == nil {
		j.Running++
	}
	j.rows[e.ItemID] = &jobRow{id: e.ItemID, index: s.Index, began: e.Time}
}

// endRow counts a row, unless it will be tried again.
func (b *Board) endRow(e event.Event, f event.JobItemFinishedEvent) {
	j := b.job(e, f.JobID)
	if _, counted := j.failed[e.ItemID]; j.final || counted {
		return
	}
	if j.rows[e.ItemID] != nil {
		j.Running = max(0, j.Running-1)
		delete(j.rows, e.ItemID)
	}
	if f.CostUSD != nil {
		j.CostUSD += *f.CostUSD
	}
	switch {
	case f.WillRetry:
		return
	case f.Status == "completed":
		j.Completed++
	case f.Status == "skipped":
		j.Skipped++
	default:
		j.Failed++
		j.failed[e.ItemID] = f.Index
		j.newest = jobFailure{f.Index, e.ItemID, whyRow(f)}
		if j.noted < maxFailures {
			j.noted++
			b.add(failureLane(j.ID), &entry{note: &Note{Kind: KindRow, Text: "row " + j.newest.text()}})
		}
	}
	j.finished++
}

// text numbers rows as people do, from 1.
func (f jobFailure) text() string { return fmt.Sprintf("%d %s  %s", f.index+1, f.id, f.why) }

// whyRow says in a few words why a row has failed.
func whyRow(f event.JobItemFinishedEvent) string {
	switch {
	case f.Status == "timeout" && f.DurationMS > 0:
		took := time.Duration(f.DurationMS) * time.Millisecond
		if took > time.Second { // the limit, not how long it took to end the row
			took = took.Truncate(time.Second)
		}
		return "timed out after " + limitText(took)
	case f.Status == "timeout":
		return "timed out"
	case f.Error != nil && f.Error.Message != "":
		return strings.ToValidUTF8(f.Error.Message[:min(len(f.Error.Message), maxWhy)], "\ufffd")
	}
	return strings.ReplaceAll(string(f.Status), "_", " ")
}

// progress takes the numbers of the stream, which are right also where some of
// its lines are missing.
func (j *Job) progress(p event.JobProgressEvent) {
	if j.final {
		return
	}
	j.Total, j.Running, j.Completed, j.Failed, j.Skipped = p.Total, p.Running, p.Completed, p.Failed, p.Skipped
	if p.ETASeconds != nil {
		j.ETA = time.Duration(max(0, *p.ETASeconds) * float64(time.Second))
	}
	if p.CostUSD != nil {
		j.CostUSD = *p.CostUSD
	}
}

// finish takes the totals.
func (j *Job) finish(f event.JobFinishedEvent) {
	if !j.final {
		j.End = &f
		j.Total, j.Completed, j.Failed, j.Skipped, j.Running = f.Total, f.Completed, f.Failed, f.Skipped, 0
	}
	j.end()
}

// end makes it final.
func (j *Job) end() {
	if !j.final {
		j.final, j.rows = true, nil
		j.Took = max(0, j.seen.Sub(j.began))
	}
}

// rowDoes follows what a row's agent does. Its own agents do not count, and what
// it was told, asked or warned of is in the log.
func (b *Board) rowDoes(e event.Event) {
	for _, j := range b.jobs {
		if row := j.rows[e.ItemID]; row != nil {
			row.does(e)
			j.seen = e.Time
		}
	}
}

func (r *jobRow) does(e event.Event) {
	if r.session == "" {
		r.session = e.SessionID
	}
	id := callOf(e.Body)
	if id == "" || e.SessionID != r.session {
		return
	}
	if r.doing == nil || r.doing.ID != id {
		if _, begins := e.Body.(event.ToolCallEvent); !begins {
			return
		}
		r.doing = newFrame(id, e.Time)
		r.doing.Output = nil
	}
	if r.doing.take(e); r.doing.State.Final() {
		r.doing = nil
	}
}

// longest are up to n rows that have been worked on for longest.
func (j *Job) longest(n int) []*jobRow {
	rows := slices.SortedFunc(maps.Values(j.rows), func(a, b *jobRow) int {
		return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.index, b.index), strings.Compare(a.id, b.id))
	})
	return rows[:min(n, len(rows))]
}

// failedRows names up to n rows that failed: by their numbers, or by their ids
// where the stream has only those.
func (j *Job) failedRows(n int) []string {
	var names []string
	for _, index := range slices.Sorted(maps.Values(j.failed)) {
		if len(names) < n {
			names = append(names, fmt.Sprint(index+1))
		}
	}
	if len(names) == 0 && j.End != nil {
		for _, id := range j.End.FailedItems[:min(n, len(j.End.FailedItems))] {
			names = append(names, term.Label(id))
		}
	}
	return names
}

// Progress returns the jobs that a format without a region speaks of now: at
// their start, and then whenever another tenth of the rows is done or a minute
// has passed.
func (b *Board) Progress(now time.Time) []*Job {
	var out []*Job
	for _, j := range b.jobs {
		if j.final || j.printed >= 0 && (j.Done()-j.printed)*10 < max(1, j.Total) && now.Sub(j.printedAt) < time.Minute {
			continue
		}
		j.printed, j.printedAt = j.Done(), now
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b *Job) int { return cmp.Or(a.began.Compare(b.began), strings.Compare(a.ID, b.ID)) })
	return out
}
