package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exampleBounds bound writes to a workspace in a folder that exists.
func exampleBounds(t *testing.T) (bounds, string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(base, "w")
	for _, dir := range []string{work, filepath.Join(work, ".git"), filepath.Join(base, "o")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "o"), filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	return bounds{
		on: true, mode: WorkspaceWrite, denies: readOnly, writable: []string{work},
		protected: []string{filepath.Join(work, ".git")}, masked: []string{filepath.Join(work, ".env")},
		could: func(path string) bool { return strings.HasPrefix(path, base) },
	}, base
}

func TestRefusalsAreReadFromWhatCommandsPrint(t *testing.T) {
	b, base := exampleBounds(t)
	const (
		write, read, connect = "write", "read", "connect"
		none                 = "-"
	)
	for _, c := range []struct{ name, output, what, target string }{
		{"touch", "touch: cannot touch '@/o/x': Read-only file system", write, "@/o/x"},
		{"dash", "sh: 1: cannot create @/o/x: Read-only file system", write, "@/o/x"},
		{"bash", "bash: line 1: @/o/x: Read-only file system", write, "@/o/x"},
		{"bash by its path", "/bin/bash: line 1: @/o/x: Read-only file system", write, "@/o/x"},
		{"relative", "bash: line 1: ../o/x: Read-only file system", write, "@/o/x"},
		{"through a link", "touch: cannot touch 'link/x': Read-only file system", write, "@/w/link/x"},
		{"go", "panic: open @/o/x: read-only file system", write, "@/o/x"},
		{"go mkdir", "mkdir @/o/x: read-only file system", write, "@/o/x"},
		{"python", "OSError: [Errno 30] Read-only file system: '@/o/x'", write, "@/o/x"},
		{"node", "Error: EROFS: read-only file system, open '@/o/x'", write, "@/o/x"},
		{"rust", `Error: Os { code: 30, kind: ReadOnlyFilesystem, message: "Read-only file system" }`, write, ""},
		{"rust with a path", "error: failed to write `@/o/x`: Read-only file system (os error 30)", write, "@/o/x"},
		{"blank in the name", "rm: cannot remove '@/o/a b': Read-only file system", write, "@/o/a b"},
		{"coloured", "\x1b[31mcp: cannot create regular file '@/o/x': Read-only file system\x1b[0m", write, "@/o/x"},
		{"git", "fatal: Unable to create '@/w/.git/index.lock': Read-only file system", write, "@/w/.git/index.lock"},
		{"git config", "error: could not lock config file .git/config: Read-only file system", write, "@/w/.git/config"},
		{"moved git", "mv: cannot move '.git' to 'x': Device or resource busy", write, "@/w/.git"},
		{"hidden", "cat: .env: Permission denied", read, "@/w/.env"},
		{"curl", "curl: (6) Could not resolve host: example.com", connect, "example.com"},
		{"curl without a name", "curl: (7) Failed to connect to 192.0.2.1 port 443 after 0 ms: Couldn't connect to server", connect, "192.0.2.1"},
		{"git clone", "fatal: unable to access 'https://example.com/x/': Could not resolve host: example.com", connect, "example.com"},
		{"ssh", "ssh: Could not resolve hostname example.com: Temporary failure in name resolution", connect, "example.com"},
		{"go get", "dial tcp: lookup proxy.example.com: device busy", connect, "proxy.example.com"},
		{"go dial", "dial tcp 192.0.2.1:443: socket: operation not permitted", connect, "192.0.2.1:443"},
		{"npm", "npm error request to https://example.com failed, reason: getaddrinfo EAI_AGAIN example.com", connect, "example.com"},
		{"wget", "wget: unable to resolve host address ‘example.com’", connect, "example.com"},
		{"apt", "Err:1 http://example.com Temporary failure resolving 'example.com'", connect, "example.com"},
		{"ping", "ping: example.com: Temporary failure in name resolution", connect, "example.com"},
		{"socket", "ping: socket: Operation not permitted", connect, ""},
		{"mount", "mount: /mnt: permission denied.", "", ""},
		{"strace", "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted", "", ""},

		{"own file in the workspace", "cat: secret: Permission denied", none, ""},
		{"root's file outside", "sh: 1: cannot create /elsewhere/x: Read-only file system", none, ""},
		{"permission outside", "cat: @/o/x: Permission denied", none, ""},
		{"no such file", "cat: @/o/x: No such file or directory", none, ""},
		{"workspace on a read-only disk", "touch: cannot touch 'a': Read-only file system", none, ""},
		{"busy elsewhere", "umount: /data: device or resource busy", none, ""},
		{"test failure", "FAIL: TestSandbox (0.1s)", none, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			full := func(s string) string { return strings.ReplaceAll(s, "@", base) }
			got := b.refusals(Ended{ExitCode: 1, Output: "some line\n" + full(c.output) + "\n", Dir: filepath.Join(base, "w")})
			if c.what == none {
				if len(got) > 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].What != c.what || got[0].Target != full(c.target) || got[0].Reason == "" {
				t.Errorf("got %+v, want %q of %q", got, c.what, full(c.target))
			}
		})
	}
}

func TestReasonSaysWhatWouldAllowIt(t *testing.T) {
	b, base := exampleBounds(t)
	reason := func(line string) string {
		got := b.refusals(Ended{ExitCode: 1, Output: strings.ReplaceAll(line, "@", base), Dir: base})
		if len(got) != 1 {
			t.Fatalf("got %+v", got)
		}
		return got[0].Reason
	}
	if diff := cmp.Diff(`.git is protected; a policy rule path: [".git/**"], access: [write] lifts it`,
		reason("open @/w/.git/config: read-only file system")); diff != "" {
		t.Error(diff)
	}
	if got := reason("touch: cannot touch '@/o/x': Read-only file system"); !strings.Contains(got, "--add-dir") {
		t.Errorf("got %q", got)
	}
	if got := reason("curl: (6) Could not resolve host: a.example"); !strings.Contains(got, "--network") {
		t.Errorf("got %q", got)
	}
	b.mode = ReadOnly
	if got := reason("touch: cannot touch '@/o/x': Read-only file system"); !strings.Contains(got, "workspace-write") {
		t.Errorf("got %q", got)
	}
}

func TestSuccessIsNoRefusalUnlessNothingElseIsMeant(t *testing.T) {
	b, base := exampleBounds(t)
	for output, want := range map[string]int{
		"curl: (6) Could not resolve host: a.example":                   0,
		"cat: " + base + "/w/.env: Permission denied":                   0,
		"Read-only file system":                                         0,
		"touch: cannot touch '" + base + "/o/x': Read-only file system": 1,
	} {
		if got := b.refusals(Ended{Output: output, Dir: base}); len(got) != want {
			t.Errorf("%q: got %+v", output, got)
		}
	}
}

func TestForeignArchitectureIsNamed(t *testing.T) {
	b, _ := exampleBounds(t)
	for _, e := range []Ended{{ExitCode: -1, Signal: "SIGSYS"}, {ExitCode: 159}} {
		if got := b.refusals(e); len(got) != 1 || !strings.Contains(got[0].Reason, "architecture") {
			t.Errorf("%+v: got %+v", e, got)
		}
	}
}

func TestWithNetworkOrWithoutSandboxNothingIsInferred(t *testing.T) {
	b, base := exampleBounds(t)
	b.network = true
	if got := b.refusals(Ended{ExitCode: 6, Output: "curl: (6) Could not resolve host: a.example"}); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	b.on = false
	if got := b.refusals(Ended{ExitCode: 1, Output: "touch: cannot touch '" + base + "/o/x': Read-only file system"}); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestRefusalsAreFewAndToldOnce(t *testing.T) {
	b, base := exampleBounds(t)
	var out strings.Builder
	for i := range 100 {
		for range 2 {
			out.WriteString("touch: cannot touch '" + base + "/o/" + strings.Repeat("x", i+1) + "': Read-only file system\n")
		}
	}
	got := b.refusals(Ended{ExitCode: 1, Output: out.String(), Dir: base})
	if len(got) != maxRefusalsOfCommand {
		t.Fatalf("got %d", len(got))
	}
	if got[0].Target == got[1].Target {
		t.Errorf("told twice: %q", got[0].Target)
	}
}

// Whatever a command prints, a refusal is about something that is forbidden.
func FuzzRefusals(f *testing.F) {
	f.Add("touch: cannot touch '/o/x': Read-only file system", 1)
	f.Add("bash: line 1: \x1b[31m/x: Permission denied", 126)
	f.Add("getaddrinfo EAI_AGAIN a.example\nlookup b on c", 0)
	f.Fuzz(func(t *testing.T, output string, code int) {
		b := bounds{on: true, denies: readOnly, writable: []string{"/w"}, protected: []string{"/w/.git"}, could: func(string) bool { return true }}
		for _, r := range b.refusals(Ended{ExitCode: code, Output: output, Dir: "/w"}) {
			if r.Reason == "" {
				t.Errorf("no reason: %+v", r)
			}
			if r.What == "write" && r.Target != "" && isBelow("/w", r.Target) && !isBelow("/w/.git", r.Target) {
				t.Errorf("%q is allowed", r.Target)
			}
		}
	})
}
