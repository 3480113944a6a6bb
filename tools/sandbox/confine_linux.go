package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// rootKeeps are the capabilities that commands of root keep, in the user
// namespace they are in: files of any owner belong to what root works with. None
// of them leads out of the tree that commands see, as DAC_READ_SEARCH would
// (open_by_handle_at).
var rootKeeps = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_SETGID, unix.CAP_SETUID,
}

// helperNeeds are the capabilities that the helper has until confine, beside
// rootKeeps, which make overlays work whoever owns the files in them.
var helperNeeds = append([]uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}, rootKeeps...)

// confine takes everything away from the calling thread that commands must not
// have. The thread then becomes the helper by exec, so that there is no other
// thread that still has it.
func confine(s *setup, write []string) error {
	if err := dropBounding(); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if s.landlock > 0 {
		if err := restrict(s.landlock, s.network, write, devicesAt(s.level)); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	shared := sharingCalls
	if s.level != LevelLandlock {
		shared = nil
	}
	if err := filterCalls(s.network, shared...); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	if err := setCapabilities(); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// dropBounding sees to it that no capability can be got back by exec.
func dropBounding() error {
	keep := map[uintptr]bool{}
	if os.Geteuid() == 0 {
		for _, c := range rootKeeps {
			keep[c] = true
		}
	}
	for c := uintptr(0); ; c++ {
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			break // no such capability
		}
		if held == 0 || keep[c] {
			continue
		}
		// A user without capabilities cannot do this, and with no_new_privs
		// need not: nothing gives him one.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			return err
		}
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// setCapabilities leaves nothing, or to root what it keeps and has.
func setCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	var keep [2]uint32
	if os.Geteuid() == 0 {
		for _, c := range rootKeeps {
			keep[c/32] |= 1 << (c % 32)
		}
	}
	for i := range data {
		data[i].Permitted &= keep[i]
		data[i].Effective = data[i].Permitted
		data[i].Inheritable = 0
	}
	return unix.Capset(&head, &data[0])
}
