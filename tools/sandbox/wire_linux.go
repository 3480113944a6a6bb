package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// drover and its helper exchange frames over a socket pair: four bytes of
// length, one byte of kind, a body. Strings are bytes, since neither arguments
// nor paths need be UTF-8. Descriptors come with the first byte of a frame.

// The kinds of frames.
const (
	// Sent by drover.
	frameSetup byte = iota + 1
	frameLaunch
	frameEnd
	// Sent by the helper.
	framePlaced
	frameReady
	frameBroken
	frameStarted
	frameRefused
	frameExited
	frameEnded
)

// maxFrame bounds what a peer can make the other one allocate. The kernel takes
// no more than 6 MiB of arguments and environment.
const maxFrame = 64 << 20

var errFrame = errors.New("malformed frame")

// conn is one end of the socket pair. send may be called concurrently, receive
// may not.
type conn struct {
	socket *net.UnixConn
	mu     sync.Mutex
}

// newConn takes the descriptor over.
func newConn(fd int) (*conn, error) {
	file := os.NewFile(uintptr(fd), "control")
	if file == nil {
		return nil, errors.New("no control socket")
	}
	defer func() { _ = file.Close() }() // FileConn has its own copy
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("the control socket is no socket of this system")
	}
	return &conn{socket: u}, nil
}

func (c *conn) close() { _ = c.socket.Close() } // nothing is buffered

// send writes one frame, with descriptors that stay the caller's.
func (c *conn) send(kind byte, body []byte, fds ...int) error {
	frame := make([]byte, 5, 5+len(body))
	binary.LittleEndian.PutUint32(frame, uint32(len(body)))
	frame[4] = kind
	frame = append(frame, body...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(fds) > 0 {
		n, _, err := c.socket.WriteMsgUnix(frame, unix.UnixRights(fds...), nil)
		if err != nil {
			return err
		}
		frame = frame[n:]
	}
	_, err := c.socket.Write(frame)
	return err
}

// receive reads one frame. The descriptors are the caller's, also with an
// error.
func (c *conn) receive() (kind byte, body []byte, fds []int, err error) {
	var head [5]byte
	oob := make([]byte, unix.CmsgSpace(4*8))
	n, oobn, _, _, err := c.socket.ReadMsgUnix(head[:], oob)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return 0, nil, nil, err
	}
	fds = rights(oob[:oobn])
	if _, err := io.ReadFull(c.socket, head[n:]); err != nil {
		return 0, nil, fds, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > maxFrame {
		return 0, nil, fds, errFrame
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(c.socket, body); err != nil {
		return 0, nil, fds, err
	}
	return head[4], body, fds, nil
}

func rights(oob []byte) []int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var fds []int
	for i := range messages {
		if list, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, list...)
		}
	}
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // only lent
	}
}

// packer writes a body, unpacker reads it.
type packer []byte

func (p *packer) number(n int64)  { *p = binary.AppendVarint(*p, n) }
func (p *packer) string(s string) { p.number(int64(len(s))); *p = append(*p, s...) }

func (p *packer) strings(list []string) {
	p.number(int64(len(list)))
	for _, s := range list {
		p.string(s)
	}
}

type unpacker struct {
	rest []byte
	err  error
}

func (u *unpacker) number() int64 {
	n, size := binary.Varint(u.rest)
	if u.err != nil || size <= 0 {
		u.fail()
		return 0
	}
	u.rest = u.rest[size:]
	return n
}

func (u *unpacker) string() string {
	n := u.number()
	if n < 0 || n > int64(len(u.rest)) {
		u.fail()
		return ""
	}
	s := string(u.rest[:n])
	u.rest = u.rest[n:]
	return s
}

func (u *unpacker) strings() []string {
	n := u.number()
	// Every string takes a byte at least, so a number above is no number of
	// strings, and nothing is allocated for it.
	if n < 0 || n > int64(len(u.rest)) {
		u.fail()
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, u.string())
	}
	return list
}

func (u *unpacker) fail() {
	if u.err == nil {
		u.err = errFrame
	}
	u.rest = nil
}

// end returns an error if the body was not read exactly.
func (u *unpacker) end() error {
	if u.err == nil && len(u.rest) > 0 {
		return fmt.Errorf("%w: %d bytes too many", errFrame, len(u.rest))
	}
	return u.err
}

// order asks the helper to start a command.
type order struct {
	id        int64
	tty       bool
	dir       string
	argv, env []string
}

func (o *order) pack() []byte {
	size := 32 + len(o.dir)
	for _, list := range [2][]string{o.argv, o.env} {
		for _, s := range list {
			size += len(s) + 3
		}
	}
	p := make(packer, 0, size)
	p.number(o.id)
	p.number(int64(flag(o.tty)))
	p.string(o.dir)
	p.strings(o.argv)
	p.strings(o.env)
	return p
}

func unpackOrder(body []byte) (order, error) {
	u := unpacker{rest: body}
	o := order{id: u.number(), tty: u.number() != 0, dir: u.string(), argv: u.strings(), env: u.strings()}
	if err := u.end(); err != nil {
		return order{id: o.id}, err
	}
	if len(o.argv) == 0 {
		return order{id: o.id}, errFrame
	}
	return o, nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func numbers(list ...int64) []byte {
	var p packer
	for _, n := range list {
		p.number(n)
	}
	return p
}
