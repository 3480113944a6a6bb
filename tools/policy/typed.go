package policy

import (
	"slices"
	"strings"
)

// A shell without a script runs what is typed into it, or what comes through a
// pipe, and nobody reads that. Many programs start one when they are given no
// command.

// typesShell tells whether a command starts a shell that is typed into. It does
// not know the options of all these programs: a last word that is an option is
// taken for the last before the missing command.
func typesShell(name string, words []word) bool {
	args := words[1:]
	last := ""
	if len(args) > 0 {
		last = args[len(args)-1].text
	}
	switch name {
	case "login", "newgrp":
		return true
	case "script":
		return !givesCode(args)
	case "su", "runuser":
		return !givesCode(args) && !hasWord(args, "-u") && !slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "--user") })
	case "sg":
		return len(args) < 2
	case "sudo", "doas":
		return slices.ContainsFunc(args, asksForShell)
	case "screen":
		return plainWords(args) == 0 && !hasWord(args, "-ls", "-list", "-wipe", "-X", "-v", "--version", "--help")
	case "tmux":
		return len(args) == 0 || hasWord(args, "new", "new-session", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawn-window",
			"respawnp", "respawnw", "send-keys", "send", "paste-buffer", "pasteb")
	case "poetry", "pipenv", "hatch", "machinectl":
		return len(args) > 0 && hasWord(args[:1], "shell")
	case "nix-shell":
		return !hasWord(args, "--run", "--command", "-p") || hasWord(args, "-p") && !hasWord(args, "--run", "--command")
	case "chroot", "setarch":
		return plainWords(args) < 2 && !hasWord(args, "--version", "--help")
	case "unshare", "nsenter", "fakeroot", "proot", "firejail", "linux32", "linux64", "dbus-run-session":
		return (last == "" || last[0] == '-') && !hasWord(args, "--version", "--help")
	}
	return false
}

func hasWord(words []word, any ...string) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.literal && slices.Contains(any, w.text) })
}

// plainWords counts the words that are no options.
func plainWords(words []word) int {
	n := 0
	for _, w := range words {
		if !strings.HasPrefix(w.text, "-") {
			n++
		}
	}
	return n
}

// givesCode tells whether an option gives the code to run.
func givesCode(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool {
		return isCluster(w.text) && strings.Contains(w.text, "c") || strings.HasPrefix(w.text, "--c") || strings.HasPrefix(w.text, "--session-c") ||
			w.text == "--help" || w.text == "--version"
	})
}

// asksForShell tells whether an option of sudo or doas asks for a shell.
func asksForShell(w word) bool {
	switch {
	case strings.HasPrefix(w.text, "--s") && !strings.HasPrefix(w.text, "--st") && !strings.HasPrefix(w.text, "--se"), strings.HasPrefix(w.text, "--logi"):
		return true
	case len(w.text) < 2 || w.text[0] != '-' || w.text[1] == '-':
		return false
	}
	for _, letter := range w.text[1:] {
		switch {
		case letter == 's' || letter == 'i':
			return true
		case strings.ContainsRune("aCcDghpRrTtUu", letter):
			return false // what follows is its value
		}
	}
	return false
}
