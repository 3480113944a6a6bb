package jobs

import (
	"strings"
	"testing"

	"drover/runner"
	"drover/tools"
)

// tell hands a report in and returns its result.
func tell(t *testing.T, r *report, args string) tools.Result {
	t.Helper()
	call, err := r.Prepare(tools.Env{}, tools.Input{Text: args})
	if err != nil {
		return tools.Fail("arguments", err.Error())
	}
	res, err := call.Run(t.Context(), tools.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestReportCountsOnceAndForItsOwnRowOnly(t *testing.T) {
	r := &report{jobID: "j", itemID: "i"}
	const accepted, refused = `{"accepted":true}`, `{"accepted":false}`
	for _, c := range []struct {
		name, args, want string
		isError          bool
	}{
		{"another row", `{"job_id":"j","item_id":"other","result":{}}`, refused, false},
		{"another job", `{"job_id":"k","item_id":"i","result":{}}`, refused, false},
		{"an array", `{"job_id":"j","item_id":"i","result":[1]}`, "result must be a JSON object", true},
		{"text", `{"job_id":"j","item_id":"i","result":"{}"}`, "result must be a JSON object", true},
		{"null", `{"job_id":"j","item_id":"i","result":null}`, "result must be a JSON object", true},
		{"nothing", `{"job_id":"j","item_id":"i"}`, "missing field `result`", true},
		{"broken JSON", `{"job_id":`, "failed to parse function arguments", true},
		{"the row's own", `{"job_id":"j","item_id":"i","result":{ "n" : 1.50 }}`, accepted, false},
		{"a second time", `{"job_id":"j","item_id":"i","result":{"n":2}}`, refused, false},
	} {
		res := tell(t, r, c.args)
		if !strings.Contains(res.Text, c.want) || res.IsError != c.isError || res.Final != (c.want == accepted) {
			t.Errorf("%s: %+v", c.name, res)
		}
	}
	if got := string(r.result); got != `{"n":1.50}` {
		t.Errorf("the result is %s", got)
	}
}

func TestReportAfterTheEndOfTheRowIsRefused(t *testing.T) {
	r := &report{jobID: "j", itemID: "i"}
	r.close()
	if res := tell(t, r, `{"job_id":"j","item_id":"i","result":{}}`); res.Text != `{"accepted":false}` {
		t.Errorf("got %+v", res)
	}
}

func TestReportThatMissesTheSchemaIsAskedForAgainAFewTimes(t *testing.T) {
	schema, err := runner.CompileSchema("s", []byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"number"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r := &report{jobID: "j", itemID: "i", schema: schema}
	for try := 1; try <= maxReportTries; try++ {
		res := tell(t, r, `{"job_id":"j","item_id":"i","result":{"m":1}}`)
		if !res.IsError || !strings.Contains(res.Text, "n") || res.Final != (try == maxReportTries) {
			t.Errorf("try %d: %+v", try, res)
		}
	}
	if r.result != nil || r.problem == "" {
		t.Errorf("the result is %s, the problem %q", r.result, r.problem)
	}
	r = &report{jobID: "j", itemID: "i", schema: schema}
	tell(t, r, `{"job_id":"j","item_id":"i","result":{}}`)
	if res := tell(t, r, `{"job_id":"j","item_id":"i","result":{"n":1}}`); !res.Final || r.problem != "" {
		t.Errorf("a corrected result: %+v", res)
	}
}

func TestMissingReportIsAskedForOnce(t *testing.T) {
	r := &report{jobID: "j", itemID: "i"}
	if first, second := r.missing(), r.missing(); first == "" || second != "" {
		t.Errorf("%q, %q", first, second)
	}
}

func TestModelSeesTheSchemaOfTheResult(t *testing.T) {
	if s := string(ReportSpec([]byte(`{"type":"object","title":"mine"}`)).Schema); !strings.Contains(s, `"result":{"type":"object","title":"mine"}`) {
		t.Errorf("got %s", s)
	}
}
