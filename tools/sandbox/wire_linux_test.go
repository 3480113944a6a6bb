package sandbox

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func newPair(t *testing.T) (*conn, *conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*conn
	for i := range ends {
		if ends[i], err = newConn(fds[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ends[i].close)
	}
	return ends[0], ends[1]
}

func TestFramesArriveInOrderWithTheirDescriptors(t *testing.T) {
	a, b := newPair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	big := make([]byte, 3<<20)
	big[len(big)-1] = 7
	sent := make(chan error, 1)
	go func() {
		err := a.send(frameLaunch, big, int(w.Fd()), int(w.Fd()))
		sent <- errors.Join(err, a.send(frameEnd, []byte("x")))
	}()
	kind, body, fds, err := b.receive()
	if err != nil || kind != frameLaunch || len(body) != len(big) || body[len(body)-1] != 7 || len(fds) != 2 {
		t.Fatalf("first: %d, %d bytes, %v, %v", kind, len(body), fds, err)
	}
	kind, body, more, err := b.receive()
	if err != nil || kind != frameEnd || string(body) != "x" || len(more) != 0 {
		t.Fatalf("second: %d %q %v %v", kind, body, more, err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	w.Close()
	closeAll(fds)
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("a copy of the pipe is left: %d %v", n, err)
	}
	a.close()
	if _, _, _, err := b.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestFrameThatIsTooLongIsRefused(t *testing.T) {
	a, b := newPair(t)
	if _, err := a.socket.Write([]byte{0xff, 0xff, 0xff, 0xff, 1}); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := b.receive(); !errors.Is(err, errFrame) {
		t.Errorf("got %v", err)
	}
}

func TestSetupsArriveAsTheyAre(t *testing.T) {
	want := &setup{
		level: LevelNamespaces, landlock: 7, network: true, layers: "/l\xff", memory: true, whole: true,
		placements: []placement{{writable, "/w"}, {masked, "/w/ü"}}, private: []string{"/p"}, faults: noOverlay,
	}
	got, err := unpackSetup(want.pack())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(setup{}, placement{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzUnpackOrder(f *testing.F) {
	o := order{id: 3, tty: true, dir: "/d", argv: []string{"a", ""}, env: []string{"B=c"}}
	f.Add(o.pack())
	f.Add([]byte{})
	f.Add([]byte{2, 2, 0xfe, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := unpackOrder(body)
		if err != nil {
			return
		}
		again, err := unpackOrder(got.pack())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again, cmp.AllowUnexported(order{})); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzUnpackSetup(f *testing.F) {
	s := &setup{level: LevelLandlock, layers: "/l", placements: []placement{{layered, "/tmp"}}}
	f.Add(s.pack())
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, err := unpackSetup(body); err == nil && got == nil {
			t.Error("neither a setup nor an error")
		}
	})
}
