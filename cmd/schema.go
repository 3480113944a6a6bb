package cmd

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"drover/cmd/config"
	"drover/output/event"
	"drover/runner"
	"drover/runner/model"
	"drover/tools/policy"
)

func newSchemaCmd(a *app) *cobra.Command {
	return group("schema", "Print the JSON Schema of the event stream, a file or a tool",
		newSchemaEventsCmd(a),
		schemaCmd(a, "policy", "Print the schema of a policy file", policy.Schema),
		schemaCmd(a, "task", "Print the schema of a task file", runner.TaskSchema),
		schemaCmd(a, "config", "Print the schema of the config file", config.Schema),
		schemaCmd(a, "script", "Print the schema of a line of a script model", model.ScriptSchema),
		schemaCmd(a, "hook", "Print the schema of what a hook reads and answers", runner.HookSchema),
		newSchemaToolCmd(a),
	)
}

func newSchemaEventsCmd(a *app) *cobra.Command {
	var consumer bool
	c := &cobra.Command{Use: "events", Short: "Print the schema of the event stream", Args: noArgs,
		Long: "Print the schema of the event stream. It names every type and is closed; --consumer\nprints the one for readers, who must ignore types and keys that they do not know.",
		RunE: func(*cobra.Command, []string) error {
			schema, err := event.Schema(consumer)
			if err != nil {
				return fmt.Errorf("make the schema: %w", err)
			}
			return a.printJSON(schema)
		}}
	c.Flags().BoolVar(&consumer, "consumer", false, "allow unknown types and keys")
	return c
}

func schemaCmd(a *app, use, short string, schema func() []byte) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.printJSON(schema()) }}
}

func newSchemaToolCmd(a *app) *cobra.Command {
	return &cobra.Command{Use: "tool NAME", Short: "Print the schema of a tool's arguments", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := findTool(args[0])
			if err != nil {
				return err
			}
			return a.printJSON(t.Spec().Schema)
		}}
}

// printJSON prints a JSON document indented.
func (a *app) printJSON(doc json.RawMessage) error {
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("indent: %w", err)
	}
	_, err = fmt.Fprintln(a.stdout, string(out))
	return err
}
