//go:build !unix

package search

// folderFlags: there are none to ask for here.
const folderFlags = 0
