package cmd

import "github.com/spf13/cobra"

// commands is the list of all commands.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newRunCmd(a),
		newJobsCmd(a),
		newPolicyCmd(a),
		newEventsCmd(a),
		newSchemaCmd(a),
		newSessionsCmd(a),
		newToolsCmd(a),
		newDoctorCmd(a),
		newExitCodesCmd(a),
		newVersionCmd(a),
	}
}
