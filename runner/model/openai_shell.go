package model

import (
	"encoding/json"

	"github.com/openai/openai-go/v3/packages/param"
	oai "github.com/openai/openai-go/v3/responses"
)

// The Responses API has a command tool of its own: it is offered without a
// schema, and its calls hold an action instead of arguments. Here such a call is
// one like any other, with the action as its arguments.

// localShell is the name under which its calls are known.
const localShell = "local_shell"

// localShellItem is the type of its calls on the wire.
const localShellItem = "local_shell_call"

func localShellTool() oai.ToolUnionParam {
	tool := oai.NewToolLocalShellParam()
	return oai.ToolUnionParam{OfLocalShell: &tool}
}

// offersLocalShell tells whether calls of that name were calls of the API's own
// tool.
func offersLocalShell(tools []Tool) bool {
	for _, t := range tools {
		if t.LocalShell {
			return true
		}
	}
	return false
}

// localShellCall turns a call back into its item; false means that its arguments
// are no action. The item goes without its id, by which the server would look
// for what it was told not to store.
func localShellCall(it *Item) (oai.ResponseInputItemUnionParam, bool) {
	var action map[string]json.RawMessage
	if json.Unmarshal([]byte(it.Args), &action) != nil || action == nil {
		return oai.ResponseInputItemUnionParam{}, false
	}
	// The server takes no action without a type or an environment.
	for name, value := range map[string]string{"type": `"exec"`, "env": "{}"} {
		if string(action[name]) == "" || string(action[name]) == "null" {
			action[name] = json.RawMessage(value)
		}
	}
	raw, err := json.Marshal(map[string]any{
		"type": localShellItem, "call_id": it.CallID, "status": "completed", "action": action,
	})
	if err != nil {
		return oai.ResponseInputItemUnionParam{}, false
	}
	return param.Override[oai.ResponseInputItemUnionParam](json.RawMessage(raw)), true
}

// localShellResult answers such a call; the API calls the call's id just id.
func localShellResult(it *Item) oai.ResponseInputItemUnionParam {
	return oai.ResponseInputItemParamOfLocalShellCallOutput(it.CallID, it.Text)
}
