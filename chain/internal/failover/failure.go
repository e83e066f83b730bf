package failover

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Kind classifies a Failure. A driver may have kinds of its own.
type Kind string

// The kinds that every driver has.
const (
	Unreachable Kind = "unreachable"
	Throttled   Kind = "throttled" // rate limited, with or without Retry-After
	Garbled     Kind = "garbled"   // the answer cannot be right
)

// Failure is the error of a node that gave no usable answer. Another node may have one, or the same
// node later.
type Failure struct {
	Host string
	Kind Kind
	// Code is the code of the fault that Fault makes of it. Defaults to node_unavailable.
	Code string
	What string
	// Trouble is what the failure shows of the node. Defaults to silent.
	Trouble chain.NodeTrouble
	// RetryAfter is the remaining delay that the node asked for; 0 for none.
	RetryAfter time.Duration
	Cause      error
}

// Error returns the host, what happened and the kind.
func (f *Failure) Error() string {
	if f.Kind == "" {
		return fmt.Sprintf("node %s: %s", f.Host, f.What)
	}

	return fmt.Sprintf("node %s: %s (%s)", f.Host, f.What, f.Kind)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Refusal is the JSON-RPC error object of one call (JSON-RPC 2.0, section 5.1).
type Refusal struct {
	Host, Method string
	Code         int
	Message      string
	Data         json.RawMessage
}

// Error returns the host, the method, and the node's message and code.
func (r *Refusal) Error() string {
	return fmt.Sprintf("node %s refused %s: %s (code %d)", r.Host, r.Method, r.Message, r.Code)
}

// codeLimit says that a node was asked too often. Others say it with HTTP's code for that.
const codeLimit = -32005

// IsThrottle reports whether the node refused the call because of its rate limit.
func (r *Refusal) IsThrottle() bool {
	return r.Code == codeLimit || r.Code == http.StatusTooManyRequests
}

// RefusedWith reports whether err is a Refusal with one of the codes.
func RefusedWith(err error, codes ...int) bool {
	refusal, ok := errors.AsType[*Refusal](err)
	return ok && slices.Contains(codes, refusal.Code)
}

// The errors of a working node that lacks something. Drivers may wrap them.
var (
	// ErrLagging is returned when the node's tip is below the height asked for.
	ErrLagging = errors.New("the node has not reached that height")
	// ErrPruned is returned when the node has pruned the height.
	ErrPruned = errors.New("the node no longer has that height")
	// ErrMissing is returned when the node does not know the transaction.
	ErrMissing = errors.New("the node does not know the transaction")
	// ErrNoState is returned when the node has no state at that block, however often it is asked now.
	ErrNoState = errors.New("the node has no state at that block")
)

// Mismatch is the error of a node that serves another network.
type Mismatch struct {
	Host string
	// Shows is the node's identity as a predicate ("serves chain id 5"); Want is the expected one.
	Shows, Want string
}

// Error returns the host, the network that it serves and the expected one.
func (m *Mismatch) Error() string { return fmt.Sprintf("node %s %s, not %s", m.Host, m.Shows, m.Want) }

// Fault returns err as a public fault for a network, named by its slug. A fault and nil are returned
// unchanged. The kinds, with their codes:
//
//   - fault.Stopped: Mismatch (chain_id_mismatch), ErrPruned (node_pruned)
//   - fault.NotFound: ErrMissing (transaction_unknown)
//   - fault.Unavailable: ErrLagging (node_behind), anything else (Failure.Code or node_unavailable)
func Fault(network string, err error) error {
	if err == nil {
		return nil
	}

	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}

	switch rankOf(err) {
	case rankForeign:
		mismatch, _ := errors.AsType[*Mismatch](err)

		return fault.New(
			fault.Stopped, "chain_id_mismatch",
			"node %s of network %s %s, not %s: correct the node's URL",
			mismatch.Host, network, mismatch.Shows, mismatch.Want,
		)
	case rankLagging:
		return fault.Wrap(
			err, fault.Unavailable, "node_behind", "network %s has no node that is far enough",
			network,
		)
	case rankPruned:
		return fault.Wrap(
			err, fault.Stopped, "node_pruned",
			"no node of network %s has that height any more, configure one that keeps older blocks",
			network,
		)
	case rankMissing:
		return fault.New(fault.NotFound, "transaction_unknown", "network %s has no such transaction", network)
	default: // rankNoState, rankFailed
	}

	unavailable := fault.Wrap(
		err, fault.Unavailable, "node_unavailable", "network %s gave no usable answer", network,
	)
	if failure, ok := errors.AsType[*Failure](err); ok {
		unavailable.RetryAfter = failure.RetryAfter
		if failure.Code != "" {
			unavailable.Code = failure.Code
		}
	}

	return unavailable
}

// retryRank orders errors by how much another attempt may change, the least promising first.
type retryRank int

const (
	rankForeign retryRank = iota // a node of another network
	rankPruned
	rankLagging // it will have what another one has pruned
	rankMissing
	rankNoState
	rankFailed
)

// rankOf returns the rank of an error that is no answer.
func rankOf(err error) retryRank {
	if _, foreign := errors.AsType[*Mismatch](err); foreign {
		return rankForeign
	}

	switch {
	case errors.Is(err, ErrLagging):
		return rankLagging
	case errors.Is(err, ErrPruned):
		return rankPruned
	case errors.Is(err, ErrMissing):
		return rankMissing
	case errors.Is(err, ErrNoState):
		return rankNoState
	}

	return rankFailed
}

// isAnswer reports whether err is an answer: a fault of any kind but Unavailable.
func isAnswer(err error) bool {
	answer, ok := errors.AsType[*fault.Error](err)
	return ok && !errors.Is(answer.Kind, fault.Unavailable)
}
