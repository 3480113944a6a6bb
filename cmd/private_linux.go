package cmd

import "golang.org/x/sys/unix"

// keepPrivate keeps this process's environment, in which the providers' keys
// are, from the commands of the agent: without it they can read it in /proc,
// because they have the same user. What a command starts with is its own again
// after exec. Root reads it all the same; there is no way to prevent that.
func keepPrivate() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // 0 is always a valid value
}
