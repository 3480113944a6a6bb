package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kin are the descendants of one command: the processes of its session, those
// that carry its mark in their environment although they left the session, and
// the children of both. A process that leaves the session, drops its
// environment and loses its parent is found by nobody.
type kin struct {
	leader int
	// helper is the process that started the leader, which is no kin although
	// orphans may be its children; 0 if that was drover.
	helper int
	mark   []byte
	begun  time.Time
}

// quickRange is how many process ids are probed one by one before listing /proc
// is cheaper.
const quickRange = 256

// quickTime is how long after its start the ids of a command's descendants
// surely lie above its own: the counter of ids cannot have come round.
const quickTime = time.Second

func newKin(leader int, mark string, helper int) kin {
	return kin{leader: leader, helper: helper, mark: []byte(mark + "\x00"), begun: time.Now()}
}

// living looks the kin up. The usual answer, nobody, has to be cheap, since it
// is asked for after every command: a short command on a quiet machine can only
// have descendants among the few ids given away since it started.
func (k *kin) living() []member {
	if time.Since(k.begun) < quickTime {
		last := lastPID()
		if last >= k.leader && last-k.leader <= quickRange {
			if !k.anyIn(k.leader, last) {
				return nil
			}
		}
	}
	all, ok := listProcesses()
	if !ok {
		return groupOf(k.leader)
	}
	return k.choose(all)
}

// groupOf stands in for a look at /proc where there is none: it only tells
// whether the group has a member.
func groupOf(leader int) []member {
	if syscall.Kill(-leader, 0) != nil {
		return nil
	}
	return []member{{pid: leader, group: leader, session: leader}}
}

func (k *kin) anyIn(first, last int) bool {
	found := false
	for pid := first; pid <= last; pid++ {
		if p, ok := statProcess(pid); ok && pid != k.helper && (k.owns(p) || p.parent == k.leader) {
			k.bury(p)
			found = found || !p.zombie
		}
	}
	return found
}

// choose returns the kin among all processes: by session and mark first, then
// the children of those, until nothing is added.
func (k *kin) choose(all []process) []member {
	mine := map[int]bool{}
	for _, p := range all {
		if p.pid != k.helper && k.owns(p) {
			mine[p.pid] = true
			k.bury(p)
		}
	}
	return closure(all, mine, k.helper)
}

func (k *kin) owns(p process) bool {
	if p.session == k.leader {
		return true
	}
	// Nobody can join a session, so drover's own holds no kin.
	return !p.zombie && p.session != ownSession() && hasMark(p.pid, k.mark)
}

// bury reaps a dead descendant that was handed to drover because drover is the
// init process of its container. Nobody else waits for it.
func (k *kin) bury(p process) {
	if p.zombie && p.pid != k.leader && p.parent == os.Getpid() {
		_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
	}
}

// marked are all processes whose environment holds one NAME=value.
type marked struct{ mark []byte }

func (m marked) living() []member {
	mine := map[int]bool{}
	all, _ := listProcesses() // without /proc nobody is found
	for _, p := range all {
		if !p.zombie && p.pid != os.Getpid() && hasMark(p.pid, m.mark) {
			mine[p.pid] = true
		}
	}
	return closure(all, mine, 0)
}

// closure adds the children of the chosen processes, but for one that is none
// of them, and returns all that run.
func closure(all []process, mine map[int]bool, except int) []member {
	for grown := len(mine) > 0; grown; {
		grown = false
		for _, p := range all {
			if !mine[p.pid] && mine[p.parent] && p.pid != os.Getpid() && p.pid != except {
				mine[p.pid], grown = true, true
			}
		}
	}
	var out []member
	for _, p := range all {
		if mine[p.pid] && !p.zombie {
			out = append(out, p.member)
		}
	}
	return out
}

type process struct {
	member
	zombie bool
}

// lastPID is the process id given away last, 0 if unknown.
func lastPID() int {
	var buf [128]byte
	n, err := readFile("/proc/loadavg", buf[:])
	if err != nil {
		return 0
	}
	line := strings.TrimSpace(string(buf[:n]))
	pid, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
	if err != nil {
		return 0
	}
	return pid
}

// statProcess reads one process (or thread; a thread looks like its process but
// for the id).
func statProcess(pid int) (process, bool) {
	var buf [512]byte
	n, err := readFile("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, buf[:n])
}

// parseStat reads "PID (NAME) STATE PARENT GROUP SESSION …". The name is chosen
// by the process and may hold anything, also parentheses and spaces.
func parseStat(pid int, b []byte) (process, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 || i+4 > len(b) {
		return process{}, false
	}
	state := b[i+2]
	var nums [3]int
	rest := b[i+3:]
	for j := range nums {
		rest = bytes.TrimLeft(rest, " ")
		end := bytes.IndexByte(rest, ' ')
		if end < 0 {
			return process{}, false
		}
		v, err := strconv.Atoi(string(rest[:end]))
		if err != nil {
			return process{}, false
		}
		nums[j], rest = v, rest[end:]
	}
	return process{
		member: member{pid: pid, parent: nums[0], group: nums[1], session: nums[2]},
		zombie: state == 'Z' || state == 'X' || state == 'x',
	}, true
}

// listProcesses returns all processes that drover may see. ok is false when not
// even drover is among them, so that nothing can be concluded.
func listProcesses() (all []process, ok bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer func() { _ = dir.Close() }() // only read from
	names, _ := dir.Readdirnames(-1)   // what could be read is what there is
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, found := statProcess(pid); found {
			all = append(all, p)
			ok = ok || pid == os.Getpid()
		}
	}
	return all, ok
}

var environBuffers = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// hasMark says whether the environment a process was started with holds the
// mark, which ends with a zero byte. Foreign processes cannot be read and are
// none of ours.
func hasMark(pid int, mark []byte) bool {
	fd, err := openFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(fd) }()
	buf := environBuffers.Get().(*[8 << 10]byte)
	defer environBuffers.Put(buf)
	kept := 0
	for {
		n, err := readFD(fd, buf[kept:])
		if err != nil || n == 0 {
			return false
		}
		if bytes.Contains(buf[:kept+n], mark) {
			return true
		}
		// The mark may straddle two reads.
		tail := min(kept+n, len(mark)-1)
		copy(buf[:], buf[kept+n-tail:kept+n])
		kept = tail
	}
}

// readFile reads up to len(buf) bytes. /proc files need no poller, and os.File
// costs more than the read itself.
func readFile(path string, buf []byte) (int, error) {
	fd, err := openFile(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Close(fd) }()
	return readFD(fd, buf)
}

func openFile(path string) (int, error) {
	for {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

var ownSession = sync.OnceValue(func() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return -1
	}
	return sid
})
