//go:build unix && !linux

package approver

import "net"

// peer cannot tell which process has connected here.
func peer(*net.UnixConn) int { return 0 }
