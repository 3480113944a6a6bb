package approver

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"drover/output/fault"
)

// TestADescriptorOfTheRuntimeIsNoChannel: where the caller has opened nothing,
// the number may be that of something of drover's own.
func TestADescriptorOfTheRuntimeIsNoChannel(t *testing.T) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	_, err = Descriptor(fd, nil)
	var f *fault.Error
	if !errors.As(err, &f) || f.Exit != fault.Usage || !strings.Contains(f.Why, "nothing can be read from it") {
		t.Errorf("got %v", err)
	}
}
