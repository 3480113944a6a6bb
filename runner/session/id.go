package session

import (
	"crypto/rand"
	"time"
)

// alphabet is base 32 without letters that look like digits, in ASCII order,
// so that ids sort by the time in them.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

const (
	timeDigits   = 9  // milliseconds, enough until the year 3084
	randomDigits = 10 // 50 bits
)

// NewID returns an id for a session, "ses_" with the time and 50 random bits.
// Ids of different milliseconds sort by time.
func NewID() string { return newID("ses_", time.Now()) }

// NewRunID returns an id for a run, "run_" with the same digits as NewID.
func NewRunID() string { return newID("run_", time.Now()) }

func newID(prefix string, now time.Time) string {
	var b [len("ses_") + timeDigits + randomDigits]byte
	n := copy(b[:], prefix)
	ms := now.UnixMilli()
	for i := n + timeDigits - 1; i >= n; i-- {
		b[i] = alphabet[ms&31]
		ms >>= 5
	}
	// The package promises to fill the slice or to end the program.
	_, _ = rand.Read(b[n+timeDigits:])
	for i := n + timeDigits; i < len(b); i++ {
		b[i] = alphabet[b[i]&31]
	}
	return string(b[:])
}
