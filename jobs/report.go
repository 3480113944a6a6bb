package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"drover/runner"
	"drover/tools"
)

// ReportTool is the name of the tool by which a row's agent hands in its result.
const ReportTool = "report_agent_job_result"

// maxReportTries is how often a result may miss the schema.
const maxReportTries = 3

// report is what the agent of one row has reported. Its tool answers only for
// that row, and only once.
type report struct {
	jobID, itemID string
	schema        *runner.Schema
	spec          tools.Spec

	mu     sync.Mutex
	closed bool
	// result is what was accepted, nil if nothing was.
	result json.RawMessage
	// stop says that the job shall end early.
	stop  bool
	tries int
	// problem is how the latest result that was not accepted misses the schema.
	problem string
	// reminded says that the agent was told that its report is missing.
	reminded bool
}

// ReportSpec describes the tool. Where results have a schema, the model sees it.
func ReportSpec(schema json.RawMessage) tools.Spec {
	result := json.RawMessage(`{"type":"object","description":"The result: a JSON object."}`)
	if len(schema) > 0 {
		result = schema
	}
	return tools.Spec{
		Name: ReportTool, Kind: tools.Function, Offered: true, Approval: "never",
		Doc: "Hands in the result of the row that you work on. Call it exactly once, when the work is done.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["job_id","item_id","result"],"properties":{` +
			`"job_id":{"type":"string","description":"The job, as given in the task."},` +
			`"item_id":{"type":"string","description":"The row, as given in the task."},` +
			`"result":` + string(result) + `,` +
			`"stop":{"type":"boolean","description":"true ends the whole job early; leave it out otherwise."}}}`),
	}
}

// NewReportTool returns the tool as it is where no row is worked on: it accepts
// nothing.
func NewReportTool() tools.Tool {
	spec := ReportSpec(nil)
	spec.Offered = false
	return &report{closed: true, spec: spec}
}

// reportInput are the arguments of the tool.
type reportInput struct {
	JobID  *string         `json:"job_id"`
	ItemID *string         `json:"item_id"`
	Result json.RawMessage `json:"result"`
	Stop   bool            `json:"stop"`
}

// Spec describes the tool.
func (r *report) Spec() tools.Spec { return r.spec }

// Prepare decodes a report.
func (r *report) Prepare(_ tools.Env, in tools.Input) (*tools.Call, error) {
	args, raw, err := decodeReport(in)
	if err != nil {
		return nil, err
	}
	return &tools.Call{
		Display: "report item: " + *args.ItemID, Args: raw,
		Run: func(ctx context.Context, _ tools.Env) (tools.Result, error) {
			if ctx.Err() != nil {
				return tools.Result{}, context.Cause(ctx)
			}
			return r.take(args), nil
		},
	}, nil
}

func decodeReport(in tools.Input) (reportInput, json.RawMessage, error) {
	var args reportInput
	if in.Freeform {
		return args, nil, fmt.Errorf("tool %s invoked with incompatible payload", ReportTool)
	}
	var raw bytes.Buffer
	if err := json.Compact(&raw, []byte(in.Text)); err != nil {
		return args, nil, &tools.ArgumentError{Broken: true, Message: err.Error()}
	}
	if err := json.Unmarshal(raw.Bytes(), &args); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return args, nil, &tools.ArgumentError{Message: fmt.Sprintf("field `%s`: expected %s, got %s", wrong.Field, wrong.Type, wrong.Value)}
		}
		return args, nil, &tools.ArgumentError{Broken: true, Message: "expected a JSON object"}
	}
	for _, f := range []struct {
		name    string
		missing bool
	}{{"job_id", args.JobID == nil}, {"item_id", args.ItemID == nil}, {"result", args.Result == nil}} {
		if f.missing {
			return args, nil, &tools.ArgumentError{Message: "missing field `" + f.name + "`"}
		}
	}
	return args, raw.Bytes(), nil
}

// take accepts a report or says why not.
func (r *report) take(in reportInput) tools.Result {
	if !bytes.HasPrefix(in.Result, []byte("{")) {
		return tools.Fail("invalid_report", "result must be a JSON object")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if *in.JobID != r.jobID || *in.ItemID != r.itemID || r.closed || r.result != nil {
		return tools.Result{Text: `{"accepted":false}`, Display: "not accepted", Structured: map[string]bool{"accepted": false}}
	}
	if r.schema != nil {
		if err := r.schema.Validate(in.Result); err != nil {
			return r.miss(err)
		}
	}
	r.result, r.stop, r.problem = bytes.Clone(in.Result), in.Stop, ""
	return tools.Result{Text: `{"accepted":true}`, Display: "accepted", Structured: map[string]bool{"accepted": true}, Final: true}
}

// miss answers a result that does not match the schema. The last one ends the
// agent.
func (r *report) miss(err error) tools.Result {
	r.tries++
	r.problem = err.Error()
	res := tools.Fail("invalid_output", "the result does not match the JSON Schema: "+r.problem+
		"\nCall "+ReportTool+" again with the corrected result. The work itself need not be repeated.")
	if r.tries >= maxReportTries {
		r.closed, res.Final = true, true
		res.Text = "the result does not match the JSON Schema: " + r.problem
	}
	return res
}

// missing is what the agent is told that would end without a report, once.
func (r *report) missing() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.result != nil || r.closed || r.reminded {
		return ""
	}
	r.reminded = true
	return "Your result was not handed in. Call " + ReportTool + " now, with job_id " + quote(r.jobID) + " and item_id " + quote(r.itemID) + "; an answer as text counts for nothing."
}

// close refuses reports from now on.
func (r *report) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// firstSentence shortens a message for a cell or a log line.
func firstSentence(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
