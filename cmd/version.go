package cmd

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"drover/output/event"
)

func newVersionCmd(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return printVersion(a, format) },
	}
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

func printVersion(a *app, format string) error {
	switch format {
	case "text":
		_, err := fmt.Fprintf(a.stdout, "drover %s (events %s, %s, %s/%s)\n", Version, event.SchemaID, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	case "json":
		return json.NewEncoder(a.stdout).Encode(map[string]string{
			"product": "drover", "version": Version, "schema": event.SchemaID,
			"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		})
	}
	return unknownFormat(format, "text", "json")
}
