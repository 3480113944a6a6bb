package cmd

import (
	"fmt"
	"maps"
	"strings"

	"drover/output/fault"
	"drover/runner"
	"drover/tools"
)

// dynamicTools are the tools that a task file brings.
type dynamicTools struct {
	tools []tools.Tool
	names []string
	// variables hold the values of their headers, secrets.
	variables []string
	secrets   map[string]string
}

// dynamicTools makes the tools of a task. The variables of their headers must
// be set.
func (a *app) dynamicTools(task *runner.Task) (d dynamicTools, err error) {
	if task == nil {
		return d, nil
	}
	d.secrets = map[string]string{}
	for _, def := range task.Tools {
		t, err := tools.NewDynamic(def, a.getenv)
		if err != nil {
			return d, &fault.Error{Code: "tool_unusable", What: fmt.Sprintf("the tool %q of the task file cannot be used", def.Name),
				Why: err.Error(), Exit: fault.Config, Err: err}
		}
		d.tools, d.names = append(d.tools, t), append(d.names, def.Name)
		for _, variable := range def.Headers {
			d.variables = append(d.variables, variable)
			value := strings.TrimSpace(a.getenv(variable))
			d.secrets[variable] = value
			if _, credential, ok := strings.Cut(value, " "); ok {
				// "Bearer abc" is often repeated without its scheme. What follows a
				// blank in the name is not shown.
				d.secrets[variable+" "] = strings.TrimSpace(credential)
			}
		}
	}
	return d, nil
}

// withSecrets adds what the headers hold to what must never be shown.
func (d dynamicTools) withSecrets(secrets map[string]string) map[string]string {
	maps.Copy(secrets, d.secrets)
	return secrets
}

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
