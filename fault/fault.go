// Package fault holds the public words for what went wrong.
//
// Every error that leaves a room of this library carries one of the words below;
// callers ask with errors.Is and never match text. A word decides what a caller
// may do next (wait, correct, give up), the Code names the exact rule that
// refused, and the Message is a sentence for a person. httpapi turns the word
// into an HTTP status and the code into the error body's code.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// The words. Each is a sentinel for errors.Is.
var (
	// Invalid says that the caller's input breaks a rule; the same call can never succeed.
	Invalid = errors.New("invalid")
	// NotFound says that no such object exists for this caller.
	NotFound = errors.New("not found")
	// State says that the object exists but is in a state that does not allow the operation.
	State = errors.New("not allowed in this state")
	// Conflict says that somebody else changed what was read; run the whole operation again.
	Conflict = errors.New("changed by somebody else")
	// Duplicate says that a unique value (a transaction hash, a claim) is already stored.
	Duplicate = errors.New("already exists")
	// Unauthenticated says that the caller did not prove who it is.
	Unauthenticated = errors.New("not authenticated")
	// Forbidden says that the caller is known and may not do this.
	Forbidden = errors.New("not permitted")
	// Limited says that the caller did too much too soon; see RetryAfter.
	Limited = errors.New("limit exceeded")
	// Unavailable says that something this library depends on (a node, a price, a database) gave no
	// usable answer; nothing was decided, and trying again later may succeed.
	Unavailable = errors.New("unavailable")
	// Unsupported says that the driver, store or signer does not have this ability.
	Unsupported = errors.New("unsupported")
	// Stopped says that a network was stopped on purpose because going on could lose or invent money
	// (a fork below finality, a node pruned behind the cursor). A person has to look.
	Stopped = errors.New("stopped")
	// LeaseLost says that another process took over the work; the results of this attempt were thrown away.
	LeaseLost = errors.New("lease lost")
)

// Error is an error with a word, a stable code and a sentence.
type Error struct {
	// Word is one of this package's sentinels.
	Kind error
	// Code is the stable machine-readable name of the rule, in snake_case, such as
	// "amount_too_small". The API publishes it.
	Code string
	// Message is one sentence for a person: what happened, to which object, what to do next.
	// It never holds a secret.
	Message string
	// Param names the input field at fault, when there is one ("price.amount").
	Param string
	// RetryAfter is how long to wait before trying again; 0 when unknown.
	RetryAfter time.Duration
	// Cause is the error underneath, for logs; it is not shown to API callers.
	Cause error
}

// Error returns the message, the code when there is no message, and the cause after it.
func (e *Error) Error() string {
	s := e.Message
	if s == "" {
		s = e.Code
	}

	if s == "" && e.Kind != nil {
		s = e.Kind.Error()
	}

	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}

	return s
}

// Unwrap makes errors.Is find both the word and whatever the cause is.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}

	return []error{e.Kind, e.Cause}
}

// New returns an error of the given word and code; the message is formatted as by fmt.Sprintf.
func New(word error, code, format string, args ...any) *Error {
	return &Error{Kind: word, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap puts a word, a code and a sentence over a cause.
func Wrap(cause, word error, code, format string, args ...any) *Error {
	e := New(word, code, format, args...)
	e.Cause = cause

	return e
}

// Param returns an Invalid error about one input field.
func Param(param, code, format string, args ...any) *Error {
	e := New(Invalid, code, format, args...)
	e.Param = param

	return e
}

// Missing returns the NotFound error for an object, with the code the API publishes for all of them.
func Missing(object, id string) *Error {
	return New(NotFound, "resource_missing", "no such %s: %s", object, id)
}

// Code returns the code of the outermost *Error in err, or "".
func Code(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}

	return ""
}

// RetryAfter returns how long the outermost *Error in err asks to wait, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}

	return 0
}

// WithParam names the input field at fault and returns e.
func (e *Error) WithParam(param string) *Error {
	e.Param = param
	return e
}
