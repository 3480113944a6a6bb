package cmd

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drover/output/fault"
	"drover/tools/policy"
)

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// commandLine finds the drover commands that a text shows.
var commandLine = regexp.MustCompile("(?m)(?:^|`|\\s)(?:drover|go run \\./cmd/drover) ([a-z][a-z-]*(?: [a-z]+)?)((?: -[^`\\n]*)?)")

// TestReadmeNamesOnlyCommandsAndFlagsThatExist keeps the manual true.
func TestReadmeNamesOnlyCommandsAndFlagsThatExist(t *testing.T) {
	root := newRootCmd(&app{getenv: os.Getenv})
	root.InitDefaultCompletionCmd()
	found := 0
	for _, m := range commandLine.FindAllStringSubmatch(readme(t), -1) {
		words := strings.Fields(m[1])
		c, _, err := root.Find(words[:1])
		if err != nil || c == root {
			continue // prose, such as "drover runs coding agents"
		}
		found++
		if sub, _, err := root.Find(words); err == nil {
			c = sub
		}
		for _, word := range strings.Fields(m[2]) {
			if name, ok := strings.CutPrefix(word, "--"); ok && !hasFlag(c, name) {
				t.Errorf("%s has no flag --%s", c.CommandPath(), name)
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d commands were found in the README", found)
	}
}

func hasFlag(c *cobra.Command, name string) bool {
	name, _, _ = strings.Cut(name, "=")
	return c.Flags().Lookup(name) != nil || c.InheritedFlags().Lookup(name) != nil
}

func TestReadmePolicyLoads(t *testing.T) {
	_, after, _ := strings.Cut(readme(t), "```yaml\n")
	block, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the README shows no policy")
	}
	if _, err := policy.Load(policy.Sources{Inline: []byte(block), InlineName: "README.md", Roots: policy.Roots{Workspace: t.TempDir()}}); err != nil {
		t.Errorf("the policy of the README: %v", err)
	}
}

func TestReadmeKnowsEveryExitCode(t *testing.T) {
	_, section, _ := strings.Cut(readme(t), "## Exit codes")
	numbers := regexp.MustCompile(`\d+`).FindAllString(section, -1)
	for _, row := range fault.Table() {
		if !slices.Contains(numbers, strconv.Itoa(int(row.Code))) {
			t.Errorf("the README does not name exit code %d", row.Code)
		}
	}
}

// TestReadmeQuickStartIsTheExample makes sure that the first command of the
// README is the one that the examples run.
func TestReadmeQuickStartIsTheExample(t *testing.T) {
	text := readme(t)
	first := strings.Index(text, "go run ./cmd/drover run -f examples/quickstart/task.yaml")
	second := strings.Index(text, "go test ./...")
	if first < 0 || second < first {
		t.Error("the README's two commands are missing or in the wrong order")
	}
	if _, err := os.Stat("../examples/quickstart/task.yaml"); err != nil {
		t.Error(err)
	}
}
