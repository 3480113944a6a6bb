package cmd

import (
	"fmt"
	"maps"
	"strings"

	"drover/output/fault"
	"drover/runner"
)

// mergeAnswers puts the answers of the command line, ID=LABEL each, over those
// of the task file. Everything after the first = is the label.
func mergeAnswers(flags []string, task *runner.Task) (map[string]string, error) {
	answers := map[string]string{}
	if task != nil {
		maps.Copy(answers, task.Answers)
	}
	given := map[string]bool{}
	for _, text := range flags {
		id, label, ok := strings.Cut(text, "=")
		id = strings.TrimSpace(id)
		why := ""
		switch {
		case !ok:
			why = fmt.Sprintf("%q has no =", text)
		case id == "":
			why = "it names no question"
		case strings.TrimSpace(label) == "":
			why = fmt.Sprintf("the answer to %q is empty", id)
		case given[id]:
			why = fmt.Sprintf("the question %q is answered twice", id)
		}
		if why != "" {
			return nil, &fault.Error{Code: "usage", What: "--answer cannot be used", Why: why,
				Fix: "write --answer ID=LABEL, once for each question", Exit: fault.Usage}
		}
		given[id] = true
		answers[id] = label
	}
	return answers, nil
}
