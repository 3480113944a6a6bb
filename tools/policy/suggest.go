package policy

import (
	"slices"
	"strings"

	"drover/output/fault"
)

// catalogue are the names of all tools, whether built, enabled or not.
var catalogue = []string{
	"exec_command", "write_stdin", "shell", "shell_command", "local_shell", "apply_patch", "write_file",
	"search_in_files", "list_dir", "view_image", "drover_help", "update_plan", "get_goal", "create_goal", "update_goal",
	"request_user_input", "request_permissions", "spawn_agent", "send_input", "wait_agent", "close_agent",
	"resume_agent", "send_message", "followup_task", "list_agents", "spawn_agents_on_csv", "report_agent_job_result",
	"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource", "tool_search", "tool_suggest", "exec",
	"wait", "test_sync_tool", "check",
}

// canonicalTool returns the name of a tool that is known under several.
func canonicalTool(name string) string {
	switch name {
	case "container.exec":
		return "shell"
	case "applypatch":
		return "apply_patch"
	case "astracode_help":
		return "drover_help"
	}
	return name
}

// KnownTool tells whether a name belongs to a tool of the catalogue, whether
// built, enabled or not, or is another name of one.
func KnownTool(name string) bool { return slices.Contains(catalogue, canonicalTool(name)) }

// manualOrder are the keys of a rule in the order of the manual, which is
// that of their use.
var manualOrder = []string{"id", "effect", "reason", "tool", "argv", "argv_any", "argv_none", "argv_exact", "path",
	"access", "host", "mcp", "args", "agent", "mode", "except", "max_scope", "on_deny", "on_ask", "timeout", "network",
	"sandbox"}

// byUse compares two keys: those of a rule as in the manual, then others by
// name.
func byUse(a, b string) int {
	i, j := slices.Index(manualOrder, a), slices.Index(manualOrder, b)
	switch {
	case i >= 0 && j >= 0:
		return i - j
	case i < 0 && j < 0:
		return strings.Compare(a, b)
	}
	// The one that the manual lists comes first.
	return j - i
}

// foreign are keys that other products use for ours.
var foreign = map[string]string{
	"command": "argv", "commands": "argv", "cmd": "argv", "command_prefix": "argv", "prefix": "argv", "pattern": "argv",
	"exec": "argv", "arguments": "args", "decision": "effect", "action": "effect", "name": "id", "paths": "path", "file": "path",
	"files": "path", "tools": "tool", "hosts": "host", "domain": "host", "server": "mcp", "justification": "reason",
	"message": "reason", "unless": "except", "exclude": "except", "default_effect": "default", "approval_policy": "approval",
}

// nearestKey returns the key that a misspelled or foreign one probably means,
// or an empty string.
func nearestKey(key string, known []string) string {
	if near := fault.Nearest(key, known); near != "" {
		return near
	}
	names := make([]string, 0, len(foreign))
	for name, ours := range foreign {
		for _, k := range known {
			if k == ours {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	if near := fault.Nearest(key, names); near != "" {
		return foreign[near]
	}
	return ""
}
