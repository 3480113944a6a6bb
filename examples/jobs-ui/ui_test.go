// Package jobsui opens the web UI of a job in a real browser.
//
// DROVER_UI=1 runs it; it needs Chromium. DROVER_UI_PICTURE names a file for a
// picture of the page.
package jobsui

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/cmd"
	"drover/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main() // returns, unless this process is the helper of a run
	if os.Getenv("UI_IS_DROVER") != "" {
		os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestBrowserFindsTheRowsOfAJob(t *testing.T) {
	if os.Getenv("DROVER_UI") == "" {
		t.Skip("DROVER_UI is not set: no browser is started; the tests of jobs/ui ask the same handler")
	}
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Fatal("no Chromium is here: apt-get install chromium")
	}
	dir := t.TempDir()
	lay(t, dir)
	drover := func(args ...string) *exec.Cmd {
		c := exec.Command(os.Args[0], args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "UI_IS_DROVER=1", "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
		return c
	}
	// One row fails, so the job ends with 20.
	out, err := drover("jobs", "run", "rows.csv", "--id-column", "id", "--instruction", "Say {word}", "-o", "out.csv", "-m", "script:model.jsonl", "--output-schema", "schema.json").CombinedOutput()
	if code := exitCode(err); code != 20 {
		t.Fatalf("the job ended with %d\n%s", code, out)
	}
	ui := drover("jobs", "ui")
	stdout, err := ui.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ui.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ui.Process.Kill(); _ = ui.Wait() }() // it has ended, unless the test failed
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the UI says no URL: %v", err)
	}
	entry := strings.TrimSpace(line)
	page := open(t, browser, dir, entry, "jobs?state=completed", os.Getenv("DROVER_UI_PICTURE"))
	for _, want := range []string{"drover_row", "ticket-1", "ticket-4"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if t.Failed() {
		t.Logf("the page: %.3000s", page)
	}
	if err := ui.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := ui.Wait(); err != nil {
		t.Errorf("the UI ended with %v", err)
	}
}

// open opens the entry, which sets the cookie, and then the page, in one browser
// profile, and returns the page as it is after its scripts have run.
func open(t *testing.T, browser, dir, entry, page, picture string) string {
	t.Helper()
	u, err := url.Parse(entry)
	if err != nil {
		t.Fatal(err)
	}
	there := *u
	there.Path, there.RawQuery, _ = strings.Cut(page, "?")
	there.Path = "/" + strings.TrimSuffix(there.Path, "?")
	_, there.RawQuery, _ = strings.Cut(page, "?")
	there.RawQuery += "&token=" + u.Query().Get("token")
	run := func(args ...string) string {
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		defer cancel()
		args = append([]string{"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
			"--user-data-dir=" + filepath.Join(dir, "browser"), "--window-size=1200,640", "--virtual-time-budget=8000"}, args...)
		out, err := exec.CommandContext(ctx, browser, args...).Output()
		if err != nil {
			t.Fatalf("the browser: %v", err)
		}
		return string(out)
	}
	dom := run("--dump-dom", there.String())
	if picture != "" {
		path, err := filepath.Abs(picture)
		if err != nil {
			t.Fatal(err)
		}
		run("--screenshot="+path, there.String())
	}
	return dom
}

func lay(t *testing.T, dir string) {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("id,word\n")
	for i := range 5 {
		fmt.Fprintf(&rows, "ticket-%d,%s\n", i+1, []string{"login", "invoice", "", "export", "search"}[i])
	}
	for name, text := range map[string]string{
		"rows.csv":    rows.String(),
		"schema.json": `{"type":"object","required":["word"],"properties":{"word":{"type":"string","minLength":1}}}`,
		"model.jsonl": strings.Repeat(`{"tool_calls":[{"name":"report_agent_job_result","args":{"job_id":"${job_id}","item_id":"${item_id}","result":{"word":"${row.word}"}}}]}`+"\n", 3),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}
