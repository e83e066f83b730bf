package failover

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// Kind says why a node gave no usable answer; a driver has its own beside these.
type Kind string

// The kinds that every driver knows.
const (
	Unreachable Kind = "unreachable"
	Throttled   Kind = "throttled" // it asked to be left alone
	Garbled     Kind = "garbled"   // its answer cannot be right
)

// Failure is a node without a usable answer: another node, or a later time, may have one.
type Failure struct {
	Host string
	Kind Kind
	// Code is that of the fault that it becomes. Defaults to node_unavailable.
	Code       string
	What       string
	RetryAfter time.Duration
	Cause      error
}

// Error names the node and what it did.
func (f *Failure) Error() string {
	if f.Kind == "" {
		return fmt.Sprintf("node %s: %s", f.Host, f.What)
	}

	return fmt.Sprintf("node %s: %s (%s)", f.Host, f.What, f.Kind)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Refusal is a node's JSON-RPC error in answer to one call (JSON-RPC 2.0, section 5.1).
type Refusal struct {
	Host, Method string
	Code         int
	Message      string
	Data         json.RawMessage
}

// Error names the node, the call and what the node said.
func (r *Refusal) Error() string {
	return fmt.Sprintf("node %s refused %s: %s (code %d)", r.Host, r.Method, r.Message, r.Code)
}

// RefusedWith reports whether err is a refusal with one of the codes.
func RefusedWith(err error, codes ...int) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && slices.Contains(codes, r.Code)
}

// What a node that works may lack; drivers wrap these in words of their own.
var (
	// ErrLagging: the node has not reached the height asked for.
	ErrLagging = errors.New("the node has not reached that height")
	// ErrPruned: the node has thrown the height away.
	ErrPruned = errors.New("the node no longer has that height")
	// ErrMissing: the node does not know the transaction.
	ErrMissing = errors.New("the node does not know the transaction")
)

// Mismatch is a node of another network.
type Mismatch struct {
	Host string
	// Shows is what the node said, as a predicate: "serves chain id 5". Want is what it should have
	// said instead.
	Shows, Want string
}

// Error names the node and its network.
func (m *Mismatch) Error() string { return fmt.Sprintf("node %s %s, not %s", m.Host, m.Shows, m.Want) }

// hope ranks why a node gave no usable answer by how much may be expected of asking it again: of
// several nodes, the one that may have known better than the others has the say.
type hope int

const (
	foreign hope = iota // it is of another network
	lagging
	pruned
	missing
	failed
)

func hopeIn(err error) hope {
	if _, other := errors.AsType[*Mismatch](err); other {
		return foreign
	}

	switch {
	case errors.Is(err, ErrLagging):
		return lagging
	case errors.Is(err, ErrPruned):
		return pruned
	case errors.Is(err, ErrMissing):
		return missing
	}

	return failed
}

// decided says that err is an answer rather than the lack of one.
func decided(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && !errors.Is(e.Word, fault.Unavailable)
}

// Fault puts the public word on an error of this package, for a network named by its slug; a fault
// is returned as it is.
func Fault(network string, err error) error {
	if err == nil {
		return nil
	}

	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}

	switch hopeIn(err) {
	case foreign:
		m, _ := errors.AsType[*Mismatch](err)

		return fault.New(
			fault.Stopped, "chain_id_mismatch",
			"node %s of network %s %s, not %s: correct the node's URL",
			m.Host, network, m.Shows, m.Want,
		)
	case lagging:
		return fault.Wrap(
			err, fault.Unavailable, "node_behind", "network %s has no node that is far enough",
			network,
		)
	case pruned:
		return fault.Wrap(
			err, fault.Stopped, "node_pruned",
			"no node of network %s has that height any more, configure one that keeps older blocks",
			network,
		)
	case missing:
		return fault.New(fault.NotFound, "transaction_unknown", "network %s has no such transaction", network)
	default: // failed
	}

	f := fault.Wrap(err, fault.Unavailable, "node_unavailable", "network %s gave no usable answer", network)
	if failure, ok := errors.AsType[*Failure](err); ok {
		f.RetryAfter = failure.RetryAfter
		if failure.Code != "" {
			f.Code = failure.Code
		}
	}

	return f
}
