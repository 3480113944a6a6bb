package approver

import (
	"bytes"
	"context"
	"testing"

	"drover/output/event"
)

func TestAnswerThatIsFasterThanItsRequestCounts(t *testing.T) {
	d := newDesk(func(string, string) {})
	d.take([]byte(`{"v":1,"type":"tool.approval.response","correlation_id":"ap_1","approved":true}`))
	d.end(errNobody) // the client has said what it had to say
	request := event.Event{Body: event.ToolApprovalRequestEvent{ToolCallID: "c", ToolName: "exec_command", CorrelationID: "ap_1", Args: bytes.NewBufferString("{}").Bytes()}}
	a, err := d.ask(context.Background(), request, func(*waiting) { t.Error("it was sent") })
	if err != nil || !a.Approved {
		t.Errorf("got %+v, %v", a, err)
	}
	if _, err := d.ask(context.Background(), request, func(*waiting) {}); err == nil {
		t.Error("one answer counts twice")
	}
}
