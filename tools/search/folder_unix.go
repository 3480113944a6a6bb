//go:build unix

package search

import "syscall"

// folderFlags make opening a folder fail if a link, pipe or device has taken
// its place since the folder above was read.
const folderFlags = syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
