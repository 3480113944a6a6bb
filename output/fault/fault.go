// Package fault is the shape of everything that can end a run badly: errors
// that reach a person, and the exit codes of the process.
//
// An Error says what failed, why, and what to do. It is printed in one place,
// output.PrintError, and becomes the error of the run's last event. The table of
// exit codes lives here too, because a code without its sentence is a riddle.
// This package prints nothing and imports nothing of ours.
package fault

import (
	"errors"
	"strings"
)

// Error is an error that reaches a person.
type Error struct {
	// Code is stable snake_case; it appears in the error event and in the
	// manual. Scripts may branch on it.
	Code string
	// What is the intention that failed, with the name the user typed.
	What string
	// Why is the fact behind it, one clause.
	Why string
	// Fix is an action, preferably a command that can be pasted. It is empty
	// when there is nothing useful to say.
	Fix string
	// Exit is the class of the failure, and so the exit code of the process.
	Exit Exit
	// Status is the HTTP status behind a provider's error, 0 if there is none.
	Status int
	// Retryable says that the same call may succeed later, unchanged.
	Retryable bool
	// Err is the wrapped cause, shown only with --debug.
	Err error
}

// Error returns What and Why in one line, without the fix.
func (e *Error) Error() string {
	if e.Why == "" {
		return e.What
	}
	return e.What + ": " + e.Why
}

// Unwrap returns the wrapped cause.
func (e *Error) Unwrap() error { return e.Err }

// Text returns the error as it is printed: one line, and the fix below it.
func (e *Error) Text() string {
	var b strings.Builder
	b.WriteString(e.Error())
	if e.Fix != "" {
		b.WriteString("\n  fix: ")
		b.WriteString(e.Fix)
	}
	return b.String()
}

// From returns err as an Error. An error without a class becomes an Error of
// class Failed with the code "error"; nil stays nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: "error", What: err.Error(), Exit: Failed, Err: err}
}
