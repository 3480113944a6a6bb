package main

import (
	"fmt"

	"drover/output/event"
)

const (
	jobRows    = 1000
	jobWorkers = 16
)

// job is a list job of a thousand rows, sixteen at a time. Every fiftieth fails,
// some of them after another try. It is over in about ten seconds.
func job(f *film) {
	id, cost := "job_film", 0.0
	f.emit(event.JobStartedEvent{JobID: id, Total: jobRows, Source: event.FileRef{Path: "data/tickets.csv"}, IDColumn: "id", OutputPath: "results.csv", Concurrency: jobWorkers})
	completed, failed := 0, 0
	var missing []string
	progress := func(running int) {
		p := event.JobProgressEvent{JobID: id, Total: jobRows, Pending: jobRows - running - completed - failed, Running: running, Completed: completed, Failed: failed}
		if done := completed + failed; done > 0 {
			eta := float64(jobRows-done) / 100
			p.ETASeconds = &eta
		}
		p.CostUSD = &cost
		f.emit(p)
	}
	progress(0)
	f.wait(1500)
	for first := 0; first < jobRows; first += jobWorkers {
		last := min(first+jobWorkers, jobRows)
		for i := first; i < last; i++ {
			f.rowStarts(id, i, 1)
		}
		progress(last - first)
		f.wait(150)
		for i := first; i < last; i++ {
			if i%100 == 75 {
				f.rowEnds(id, i, 1, event.JobItemFinishedEvent{Status: "timeout", WillRetry: true, DurationMS: 600_000})
				f.rowStarts(id, i, 2)
				f.rowEnds(id, i, 2, event.JobItemFinishedEvent{Status: "completed"})
				completed++
				continue
			}
			end := event.JobItemFinishedEvent{Status: "completed", DurationMS: 150}
			if i%20 == 7 {
				end = event.JobItemFinishedEvent{Status: "timeout", DurationMS: 600_000}
				failed++
				missing = append(missing, rowID(i))
			} else {
				completed++
			}
			f.rowEnds(id, i, 1, end)
		}
		cost += 0.05
		progress(0)
	}
	f.emit(event.JobFinishedEvent{JobID: id, Status: "partial", Total: jobRows, Completed: completed, Failed: failed, OutputPath: "results.csv", FailedItems: missing})
	f.wait(300)
	f.end()
}

func rowID(i int) string { return fmt.Sprintf("acme-%d", 7000+i) }

func rowOrigin(i int) event.Origin {
	return event.Origin{SessionID: fmt.Sprintf("ses_row_%d", i), ItemID: rowID(i)}
}

// rowStarts begins a row, whose agent calls a tool.
func (f *film) rowStarts(job string, i, attempt int) {
	f.emitAs(event.Origin{ItemID: rowID(i)}, event.JobItemStartedEvent{JobID: job, Index: i, Attempt: attempt})
	o := rowOrigin(i)
	o.SessionID += fmt.Sprintf("_%d", attempt)
	f.emitAs(o, event.SessionStartedEvent{})
	o.Turn = 1
	f.emitAs(o, event.TurnStartedEvent{Input: "prompt"})
	c := &call{film: f, id: fmt.Sprintf("row%d.%d", i, attempt), tool: "exec_command", what: "go test ./billing", as: o, command: true}
	c.emit(event.ToolCallStartEvent{ToolCallID: c.id, ToolName: c.tool})
	c.run()
}

func (f *film) rowEnds(job string, i, attempt int, end event.JobItemFinishedEvent) {
	o := rowOrigin(i)
	o.SessionID += fmt.Sprintf("_%d", attempt)
	o.Turn = 1
	c := &call{film: f, id: fmt.Sprintf("row%d.%d", i, attempt), tool: "exec_command", as: o, command: true}
	c.exit(0)
	f.emitAs(o, event.TurnFinishedEvent{Status: "completed"})
	o.Turn = 0
	f.emitAs(o, event.SessionFinishedEvent{Status: "completed"})
	end.JobID, end.Index, end.Attempt = job, i, attempt
	f.emitAs(event.Origin{ItemID: rowID(i)}, end)
}
