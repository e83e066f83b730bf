// Package fault defines the public kinds of errors.
//
// Every error that a package of this library returns is of one of the kinds below; callers use errors.Is and
// never match text. The kind decides what a caller may do next: wait, correct or give up. The Code names the
// violated rule, and the Message is a sentence for a person. httpapi maps the kind to an HTTP status and
// publishes the code in the error body.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// The kinds. Each is a sentinel for errors.Is.
var (
	// Invalid means that the caller's input breaks a rule. The same call can never succeed, unless the error
	// is Transient.
	Invalid = errors.New("invalid")
	// NotFound means that no such object exists for this caller.
	NotFound = errors.New("not found")
	// State means that the object exists, but its state does not allow the operation.
	State = errors.New("not allowed in this state")
	// Conflict means that a record has changed since it was read; run the whole operation again.
	Conflict = errors.New("changed by somebody else")
	// Duplicate means that a unique value (a transaction hash, a claim) is already stored.
	Duplicate = errors.New("already exists")
	// Unauthenticated means that the caller did not prove its identity.
	Unauthenticated = errors.New("not authenticated")
	// Forbidden means that the caller is known but may not do this.
	Forbidden = errors.New("not permitted")
	// Limited means that the caller made too many requests; see RetryAfter.
	Limited = errors.New("limit exceeded")
	// Unavailable means that a dependency of this library (a node, a price, a database) gave no usable
	// answer. Nothing was decided, and trying again later may succeed.
	Unavailable = errors.New("unavailable")
	// Unsupported means that the driver, store or signer does not have this ability.
	Unsupported = errors.New("unsupported")
	// Stopped means that a network was stopped on purpose because going on could lose or invent money (a fork
	// below finality, a node pruned behind the cursor). A person has to look.
	Stopped = errors.New("stopped")
	// LeaseLost means that another process took over the work; the results of this attempt were thrown away.
	LeaseLost = errors.New("lease lost")
)

// Error is an error with a kind, a stable code and a message.
type Error struct {
	// Kind is one of this package's sentinels.
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
	// Transient is set for an Invalid error that depends on a changing state, such as a price: the same call
	// may succeed later. It is not stored under an Idempotency-Key.
	Transient bool
	// Cause is the error underneath, for logs; it is not shown to API callers.
	Cause error
}

// Error returns the message followed by the cause; the code or the kind when there is no message.
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

// Unwrap returns the kind and the cause, for errors.Is.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}

	return []error{e.Kind, e.Cause}
}

// New returns an Error of the given kind and code; the message is formatted as by fmt.Sprintf.
func New(kind error, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error of the given kind and code that wraps a cause.
func Wrap(cause, kind error, code, format string, args ...any) *Error {
	e := New(kind, code, format, args...)
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
func Missing(object, id string) *Error { // spec D1.5
	return New(NotFound, "resource_missing", "no such %s: %s", object, id)
}

// Code returns the code of the outermost *Error in err, or "".
func Code(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}

	return ""
}

// RetryAfter returns the wait that the outermost *Error in err asks for, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}

	return 0
}

// WithParam sets the input field at fault and returns e.
func (e *Error) WithParam(param string) *Error {
	e.Param = param
	return e
}

// AsTransient sets Transient and returns e.
func (e *Error) AsTransient() *Error {
	e.Transient = true
	return e
}
