package jobs

import (
	"bytes"
	"encoding/json"
	"strings"
)

// prompt is the task of one row's agent.
func (c *crew) prompt(itemID string, cells []string) string {
	var b strings.Builder
	b.WriteString("You are one of many agents; each works on one row of a table and on nothing else.\n")
	b.WriteString("Job: " + c.jobID + "\nItem: " + itemID + "\n\nTask:\n")
	b.WriteString(c.template.Render(cells))
	b.WriteString("\n\nThe row:\n")
	b.WriteString(rowJSON(c.header, cells))
	b.WriteString("\n\nThe result must match this JSON Schema:\n")
	if len(c.spec.OutputSchema) > 0 {
		b.Write(c.spec.OutputSchema)
	} else {
		b.WriteString("{}")
	}
	b.WriteString("\n\nWhen the task is done, call report_agent_job_result exactly once, with job_id \"" + c.jobID +
		"\", item_id " + quote(itemID) + " and result: a JSON object. stop: true with it ends the whole job early; " +
		"leave it out unless the task says so. After the call was accepted you are done.")
	return b.String()
}

// rowJSON is the row as an object with the columns in their order.
func rowJSON(header, cells []string) string {
	var b strings.Builder
	b.WriteString("{")
	for i, name := range header {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  " + quote(name) + ": " + quote(cells[i]))
	}
	b.WriteString("\n}")
	return b.String()
}

// quote returns s as a JSON string, without escapes that only HTML needs.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// scriptValues are what the script model can fill in for a row.
func (c *crew) scriptValues(itemID string, cells []string) map[string]string {
	out := make(map[string]string, len(cells)+2)
	for i, name := range c.header {
		out["row."+name] = cells[i]
	}
	out["job_id"], out["item_id"] = c.jobID, itemID
	return out
}
