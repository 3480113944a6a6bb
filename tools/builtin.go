package tools

// builtin is the one list of tools: a new tool is one line here.
var builtin = []Tool{
	execCommand,
	writeStdin,
	shellTool,
	shellCommand,
	localShell,
	applyPatch,
	writeFile,
	listDir,
	searchInFiles,
	updatePlan,
	requestUserInput,
	requestPermissions,
	checkCommand,
}
