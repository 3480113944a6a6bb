package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// sandboxExec is the program that enforces a profile on macOS. It is named with
// its path, so that no PATH can put another one in its place.
const sandboxExec = "/usr/bin/sandbox-exec"

// seatbelt is what a profile is made of. All paths are absolute, and real.
type seatbelt struct {
	// writable are files and folders that are written, protected those among
	// them that are not, lifted those among these that are.
	writable, protected, lifted []string
	// masked are not read.
	masked  []string
	network bool
}

// The parts of a profile that do not depend on anything.
const (
	seatbeltBase = `(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow file-read*)
(allow file-ioctl (literal "/dev/tty") (regex #"^/dev/ttys[0-9]+$") (literal "/dev/ptmx"))
(allow file-write*
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx")
  (literal "/dev/dtracehelper") (regex #"^/dev/fd/[0-9]+$")
  (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow pseudo-tty)
(allow sysctl-read)
(allow ipc-posix-sem)
(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.PowerManagement.control"))
`
	seatbeltNetwork = `(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.mDNSResponder")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.networkd")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SecurityServer"))
`
)

// profile returns the text of the profile and the -D parameters it refers to.
// Paths are parameters, never part of the text, so that none of them can be
// read as a rule. Of several rules that match, the last one counts.
func (s *seatbelt) profile() (text string, parameters []string) {
	var b strings.Builder
	b.WriteString(seatbeltBase)
	if s.network {
		b.WriteString(seatbeltNetwork)
	}
	rule := func(head, name, filter string, paths []string) {
		for i, path := range paths {
			parameter := fmt.Sprintf("%s_%d", name, i)
			parameters = append(parameters, "-D"+parameter+"="+path)
			fmt.Fprintf(&b, "(%s (%s (param %q)))\n", head, filter, parameter)
		}
	}
	// subpath is a path and everything below it.
	rule("allow file-write*", "WRITABLE", "subpath", s.writable)
	rule("deny file-write*", "PROTECTED", "subpath", s.protected)
	// A folder above a protected name could be moved away with it.
	rule("deny file-write-unlink", "ABOVE", "literal", above(s.protected, s.writable))
	rule("allow file-write*", "LIFTED", "subpath", s.lifted)
	rule("deny file-read* file-write*", "MASKED", "subpath", s.masked)
	return b.String(), parameters
}

// above returns the folders between the writable ones and the protected names.
func above(protected, writable []string) []string {
	var out []string
	for _, path := range protected {
		for dir := filepath.Dir(path); belowAny(writable, dir); dir = filepath.Dir(dir) {
			out = append(out, dir)
			if dir == "/" {
				break
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// arguments returns what starts a command in the profile.
func (s *seatbelt) arguments(argv []string) []string {
	text, parameters := s.profile()
	out := append([]string{sandboxExec, "-p", text}, parameters...)
	return append(append(out, "--"), argv...)
}
