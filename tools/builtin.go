package tools

// builtin is the one list of tools: a new tool is one line here.
var builtin = []Tool{
	applyPatch,
	writeFile,
	listDir,
	updatePlan,
}
