package board

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drover/output/internal/term"
)

const (
	// maxNamed is how many failed rows the last frame of a job names.
	maxNamed = 5
	// maxLongest is how many rows that are being worked on are shown.
	maxLongest = 2
	// barSpace is what stands beside the bar, minBar its least width.
	barSpace, minBar = 38, 10
)

// StillJob is the row of a job in a format without a region.
func (p Painter) StillJob(j *Job, now time.Time) string {
	h := p.jobHead(j, p.jobDone(j))
	h.preview += p.Style.between + p.jobCounts(j)
	return p.header(p.Style.running, h, meta{took: elapsed(now.Sub(j.began))}, p.width())
}

func (p Painter) jobHead(j *Job, preview string) head {
	return head{name: "job " + j.Source, preview: preview}
}

func (p Painter) jobDone(j *Job) string { return fmt.Sprintf("%d/%d", j.Done(), j.Total) }

func (p Painter) jobCounts(j *Job) string {
	words := []string{fmt.Sprintf("%d running", j.Running), fmt.Sprintf("%d ok", j.Completed)}
	if j.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", j.Failed))
	}
	if j.Skipped > 0 {
		words = append(words, fmt.Sprintf("%d skipped", j.Skipped))
	}
	words = append(words, fmt.Sprintf("%d left", j.Pending()))
	if j.CostUSD > 0 {
		words = append(words, fmt.Sprintf("$%.2f", j.CostUSD))
	}
	return strings.Join(words, p.Style.between)
}

// jobPart is a job that is not finished. Where there is little room its most
// valuable rows are shown, whatever their number in the order of the frame.
func (p Painter) jobPart(j *Job, now time.Time) *part {
	type valued struct {
		place int
		row   string
	}
	look := p.Style.running
	rows := []valued{{1, p.below(look, p.jobCounts(j))}}
	if p.Columns >= narrow {
		rows = append(rows, valued{0, p.below(look, p.bar(j, now))})
	}
	if j.newest.id != "" {
		rows = append(rows, valued{2, p.belowMarked(look, p.Style.failed, term.Label(j.newest.text()))})
	}
	for i, r := range j.longest(maxLongest) {
		rows = append(rows, valued{3 + i, p.belowMarked(look, look, p.rowText(r, now))})
	}
	return &part{
		header: p.header(look, p.jobHead(j, p.jobDone(j)), meta{took: elapsed(now.Sub(j.began))}, p.width()),
		want:   len(rows),
		pick: func(n int) []string {
			chosen := slices.Clone(rows[:n])
			slices.SortFunc(chosen, func(a, b valued) int { return a.place - b.place })
			var out []string
			for _, v := range chosen {
				out = append(out, v.row)
			}
			return out
		},
	}
}

// rowText is what a row is doing, and for how long it has been worked on, which
// is never cut.
func (p Painter) rowText(r *jobRow, now time.Time) string {
	text := fmt.Sprintf("%d %s", r.index+1, term.Label(r.id))
	if r.doing != nil {
		text += "  " + strings.TrimRight(term.Label(r.doing.Name)+" "+p.preview(r.doing), " ")
	}
	took := "  " + elapsed(now.Sub(r.began))
	room := p.width() - 2*gap - term.Width(took) // the rail and the icon
	return term.Cut(text, room, p.Style.ellipsis) + took
}

// bar shows how far the job is, how fast, and how long the rest will take.
func (p Painter) bar(j *Job, now time.Time) string {
	cells := max(minBar, p.width()-barSpace)
	share := 0.0
	if j.Total > 0 {
		share = max(0, min(1, float64(j.Done())/float64(j.Total)))
	}
	full := int(share * float64(cells))
	eta := p.Style.none
	if j.ETA >= 0 {
		eta = elapsed(j.ETA)
	}
	return fmt.Sprintf("[%s%s]  %d%%   %s   eta %s", strings.Repeat("#", full), strings.Repeat("-", cells-full),
		int(share*100), p.rate(j, now.Sub(j.began)), eta)
}

// rate is how many rows were finished in a minute.
func (p Painter) rate(j *Job, took time.Duration) string {
	if j.finished == 0 || took <= 0 {
		return p.Style.none
	}
	return fmt.Sprintf("%.1f/min", float64(j.finished)/took.Minutes())
}

// Job returns the rows of a job that has ended.
func (p Painter) Job(j *Job) []string {
	words := []string{fmt.Sprintf("%d ok", j.Completed)}
	add := func(n int, word string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, word))
		}
	}
	add(j.Failed, "failed")
	add(j.Skipped, "skipped")
	add(j.Total-j.Done(), "left")
	preview := strings.Join(words, p.Style.between)
	rows := []string{p.header(p.jobLook(j), p.jobHead(j, preview), meta{took: Duration(j.Took)}, p.width())}

	words = []string{p.rate(j, j.Took)}
	if j.CostUSD > 0 {
		words = append(words, fmt.Sprintf("$%.2f", j.CostUSD))
	}
	if j.End != nil && j.End.OutputPath != "" {
		words = append(words, term.Label(j.End.OutputPath))
	}
	rows = append(rows, p.below(mark{}, strings.Join(words, p.Style.between)))
	return append(rows, p.failedRows(j)...)
}

func (p Painter) jobLook(j *Job) mark {
	switch {
	case j.End == nil:
		return p.Style.incomplete
	case j.End.Status == "cancelled":
		return p.Style.cancelled
	case j.End.Status == "completed" && j.Failed == 0:
		return p.Style.done
	}
	return p.Style.failed
}

// failedRows names the rows that failed, and says what to do about them. The
// command has a row of its own where there is no room beside the names: it is
// there to be copied.
func (p Painter) failedRows(j *Job) []string {
	if j.Failed == 0 {
		return nil
	}
	named := j.failedRows(maxNamed)
	text := "failed rows: " + strings.Join(named, ", ")
	switch n := j.Failed - len(named); {
	case len(named) == 0:
		text = fmt.Sprintf("failed rows: %d", n)
	case n > 0:
		text += fmt.Sprintf(" %s %d more", p.Style.ellipsis, n)
	}
	again := "run again: drover jobs retry " + term.Label(j.ID)
	if both := text + p.Style.between + again; term.Width(both) <= p.width()-gap {
		return []string{p.below(mark{}, both)}
	}
	return []string{p.below(mark{}, text), p.below(mark{}, again)}
}
