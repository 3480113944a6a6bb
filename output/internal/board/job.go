package board

import (
	"fmt"
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
	// ETA is how long the rest will take, as the stream has it, counted from
	// Told; it is negative until a row is finished.
	ETA  time.Duration
	Told time.Time
	// End is its last event, nil while it is open or when its stream was cut.
	End  *event.JobFinishedEvent
	Took time.Duration

	began time.Time
	final bool
	// finished counts rows since the job began, for the rate.
	finished int
	rows     map[string]*jobRow
	// failures are rows that failed for good, in that order.
	failures []jobFailure
	// printed and printedAt are how many rows were finished, and when, at the
	// last row about it in a format that does not draw.
	printed   int
	printedAt time.Time
}

// jobRow is a row that is being worked on.
type jobRow struct {
	id    string
	index int
	began time.Time
	// doing is its latest call that has no result.
	doing *Frame
}

type jobFailure struct {
	index   int
	id, why string
}

const (
	// maxFailures is how many failed rows get a row in history.
	maxFailures = 20
	// maxNamed is how many of them the last frame names.
	maxNamed = 5
	// maxJobRows is how many rows the region has for a job below its header.
	maxJobRows = 6
	// barSpace is what stands beside the bar.
	barSpace = 38
)

// Done counts the rows that need no more work.
func (j *Job) Done() int { return j.Completed + j.Failed + j.Skipped }

// Left counts the rows that are not done.
func (j *Job) Left() int { return max(0, j.Total-j.Done()) }

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
		b.job(e, body.JobID).progress(e, body)
	case event.JobFinishedEvent:
		j := b.job(e, body.JobID)
		if j.End == nil {
			j.End = &body
			j.Total, j.Completed, j.Failed, j.Skipped = body.Total, body.Completed, body.Failed, body.Skipped
		}
		j.end(e.Time)
	default:
		if e.ItemID == "" {
			return false
		}
		b.rowDoes(e)
	}
	return true
}

// job returns a job. One that nobody announced begins now.
func (b *Board) job(e event.Event, id string) *Job {
	if j := b.jobs[id]; j != nil {
		return j
	}
	return b.startJob(e, event.JobStartedEvent{JobID: id})
}

func (b *Board) startJob(e event.Event, s event.JobStartedEvent) *Job {
	j := &Job{
		ID: s.JobID, Source: path.Base(s.Source.Path), Total: s.Total, Skipped: s.Skipped,
		ETA: -1, began: e.Time, rows: map[string]*jobRow{}, printed: -1,
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
	if j.rows[e.ItemID] == nil {
		j.Running++
	}
	j.rows[e.ItemID] = &jobRow{id: e.ItemID, index: s.Index, began: e.Time}
}

// endRow counts a row, unless it will be tried again.
func (b *Board) endRow(e event.Event, f event.JobItemFinishedEvent) {
	j := b.job(e, f.JobID)
	if j.final {
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
		j.failures = append(j.failures, jobFailure{f.Index, e.ItemID, whyRow(f)})
		if len(j.failures) <= maxFailures {
			b.add(failureLane(j.ID), &entry{note: &Note{Kind: Failure, Text: j.failures[len(j.failures)-1].text("row ")}})
		}
	}
	j.finished++
}

func (f jobFailure) text(before string) string {
	return fmt.Sprintf("%s%d %s  %s", before, f.index+1, f.id, f.why)
}

// whyRow says in a few words why a row has failed.
func whyRow(f event.JobItemFinishedEvent) string {
	if f.Status == "timeout" {
		return "timed out after " + limitText(time.Duration(f.DurationMS)*time.Millisecond)
	}
	if f.Error != nil && f.Error.Message != "" {
		return f.Error.Message
	}
	return strings.ReplaceAll(string(f.Status), "_", " ")
}

func (j *Job) progress(e event.Event, p event.JobProgressEvent) {
	if j.final {
		return
	}
	j.Total, j.Running, j.Completed, j.Failed, j.Skipped = p.Total, p.Running, p.Completed, p.Failed, p.Skipped
	if p.ETASeconds != nil {
		j.ETA, j.Told = time.Duration(*p.ETASeconds*float64(time.Second)), e.Time
	}
	if p.CostUSD != nil {
		j.CostUSD = *p.CostUSD
	}
}

// rowDoes follows what a row's agent does.
func (b *Board) rowDoes(e event.Event) {
	var row *jobRow
	for _, j := range b.jobs {
		if r := j.rows[e.ItemID]; r != nil {
			row = r
		}
	}
	id := callOf(e.Body)
	if row == nil || id == "" || e.ParentSessionID != "" {
		return
	}
	if row.doing == nil || row.doing.ID != id {
		if _, begins := e.Body.(event.ToolCallEvent); !begins {
			return
		}
		row.doing = newFrame(id, e.Time)
		row.doing.Output = nil
	}
	if row.doing.take(e); row.doing.State.Final() {
		row.doing = nil
	}
}

func (j *Job) end(now time.Time) {
	if j.final {
		return
	}
	j.final = true
	if now.After(j.began) {
		j.Took = now.Sub(j.began)
	}
	j.rows = nil
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
	slices.SortFunc(out, func(a, b *Job) int { return a.began.Compare(b.began) })
	return out
}

// StillJob is the row of a job in a format without a region.
func (p Painter) StillJob(j *Job, now time.Time) string {
	h := p.jobHead(j)
	h.preview += p.Style.between + p.jobCounts(j)
	return p.header(p.Style.running, h, meta{took: elapsed(now.Sub(j.began))}, p.width())
}

func (p Painter) jobHead(j *Job) head {
	return head{name: "job", preview: fmt.Sprintf("%s  %d/%d", term.Label(j.Source), j.Done(), j.Total)}
}

func (p Painter) jobCounts(j *Job) string {
	words := []string{fmt.Sprintf("%d running", j.Running), fmt.Sprintf("%d ok", j.Completed)}
	if j.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", j.Failed))
	}
	if j.Skipped > 0 {
		words = append(words, fmt.Sprintf("%d skipped", j.Skipped))
	}
	words = append(words, fmt.Sprintf("%d left", j.Left()))
	if j.CostUSD > 0 {
		words = append(words, fmt.Sprintf("$%.2f", j.CostUSD))
	}
	return strings.Join(words, p.Style.between)
}

// jobPart is a job that is not finished.
func (p Painter) jobPart(j *Job, now time.Time) *part {
	made := &part{header: p.header(p.Style.running, p.jobHead(j), meta{took: elapsed(now.Sub(j.began))}, p.width())}
	// The most valuable comes first; it is shown in the order of the number.
	type valued struct {
		place int
		row   string
	}
	look := p.Style.running
	rows := []valued{{1, p.below(look, p.jobCounts(j))}}
	if p.Columns >= narrow {
		rows = append(rows, valued{0, p.below(look, p.bar(j, now))})
	}
	if n := len(j.failures); n > 0 {
		rows = append(rows, valued{2, p.belowMarked(look, p.Style.failed, term.Label(j.failures[n-1].text("")))})
	}
	for i, r := range j.longest() {
		text := fmt.Sprintf("%d %s", r.index+1, r.id)
		if r.doing != nil {
			text += "  " + strings.TrimRight(r.doing.Name+" "+p.preview(r.doing), " ")
		}
		rows = append(rows, valued{3 + i, p.belowMarked(look, look, term.Label(text)+"  "+elapsed(now.Sub(r.began)))})
	}
	made.want = min(len(rows), maxJobRows)
	made.pick = func(n int) []string {
		chosen := slices.Clone(rows[:n])
		slices.SortFunc(chosen, func(a, b valued) int { return a.place - b.place })
		var out []string
		for _, v := range chosen {
			out = append(out, v.row)
		}
		return out
	}
	return made
}

// longest are up to two rows that have been worked on for longest.
func (j *Job) longest() []*jobRow {
	var out []*jobRow
	for _, r := range j.rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *jobRow) int {
		if d := a.began.Compare(b.began); d != 0 {
			return d
		}
		return a.index - b.index
	})
	return out[:min(2, len(out))]
}

// bar shows how far the job is, how fast, and how long the rest will take.
func (p Painter) bar(j *Job, now time.Time) string {
	cells := max(10, p.width()-barSpace)
	share := 0.0
	if j.Total > 0 {
		share = min(1, float64(j.Done())/float64(j.Total))
	}
	full := int(share * float64(cells))
	eta := p.Style.none
	if j.ETA >= 0 {
		eta = elapsed(j.ETA - now.Sub(j.Told))
	}
	return fmt.Sprintf("[%s%s]  %d%%   %s   eta %s", strings.Repeat("#", full), strings.Repeat("-", cells-full),
		int(share*100), p.rate(j, now.Sub(j.began)), eta)
}

// rate is how many rows were finished in a minute.
func (p Painter) rate(j *Job, took time.Duration) string {
	if j.finished == 0 || took <= 0 {
		return p.Style.none + "/min"
	}
	return fmt.Sprintf("%.1f/min", float64(j.finished)/took.Minutes())
}

// Job returns the rows of a job that has ended.
func (p Painter) Job(j *Job) []string {
	look, words := p.Style.done, []string{fmt.Sprintf("%d ok", j.Completed)}
	if j.Failed > 0 {
		look = p.Style.failed
		words = append(words, fmt.Sprintf("%d failed", j.Failed))
	}
	switch {
	case j.End == nil:
		look = p.Style.incomplete
		words = append(words, fmt.Sprintf("%d left", j.Left()))
	case j.End.Status == "cancelled":
		look = p.Style.cancelled
		words = append(words, fmt.Sprintf("%d left", j.Left()))
	case j.Left() > 0:
		look = p.Style.failed
		words = append(words, fmt.Sprintf("%d left", j.Left()))
	}
	h := head{name: "job", preview: term.Label(j.Source) + "  " + strings.Join(words, p.Style.between)}
	rows := []string{p.header(look, h, meta{took: elapsed(j.Took)}, p.width())}
	second := []string{p.rate(j, j.Took)}
	if j.CostUSD > 0 {
		second = append(second, fmt.Sprintf("$%.2f", j.CostUSD))
	}
	if j.End != nil && j.End.OutputPath != "" {
		second = append(second, term.Label(j.End.OutputPath))
	}
	rows = append(rows, p.below(mark{}, strings.Join(second, p.Style.between)))
	if j.Failed > 0 {
		rows = append(rows, p.below(mark{}, p.failed(j)))
	}
	return rows
}

// failed names the rows that failed, and says what to do about them.
func (p Painter) failed(j *Job) string {
	var names []string
	list := slices.Clone(j.failures)
	slices.SortFunc(list, func(a, b jobFailure) int { return a.index - b.index })
	for _, f := range list[:min(maxNamed, len(list))] {
		names = append(names, fmt.Sprint(f.index+1))
	}
	text := "failed rows: " + strings.Join(names, ", ")
	if n := j.Failed - len(names); n > 0 {
		text = strings.TrimSuffix(text, " ") + fmt.Sprintf(" %s %d more", p.Style.ellipsis, n)
	}
	return text + p.Style.between + "run again: drover jobs retry " + term.Label(j.ID)
}
