//go:build linux && !amd64

package sandbox

// refusedHere are the refused calls of this architecture alone.
var refusedHere []uint32
