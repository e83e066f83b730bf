package failover

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/chain"
)

// Node holds the health of one node between calls; a driver's endpoint embeds it. The zero health
// is good. It is safe for concurrent use.
type Node struct {
	Host    string // the only part of the URL that messages show
	Secrets        // the parts that they must not

	mu             sync.Mutex
	verified       bool
	tip            uint64 // newest height seen, 0 for none
	backOff        *backoff.ExponentialBackOff
	backOffUntil   time.Time
	demotedUntil   time.Time // others are preferred
	throttledUntil time.Time
	troubles       map[chain.NodeTrouble]trouble
	version        string
	warnings       []string
	pace           pace
	alone          bool // no other node can answer
}

// State returns the node itself, for types that embed it.
func (n *Node) State() *Node { return n }

// Fail returns a Failure of this node.
func (n *Node) Fail(kind Kind, format string, args ...any) *Failure {
	return &Failure{Host: n.Host, Kind: kind, What: fmt.Sprintf(format, args...)}
}

// Garbled returns the Failure of an answer that cannot be right.
func (n *Node) Garbled(format string, args ...any) error { return n.Fail(Garbled, format, args...) }

// Describe returns the text of a transport error without the URL that it may hold.
func (n *Node) Describe(err error, timeout time.Duration) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", timeout)
	}

	if urlError, ok := errors.AsType[*url.Error](err); ok {
		err = urlError.Err
	}

	return n.Clean(err.Error())
}

// SawTip stores the newest height that the node showed.
func (n *Node) SawTip(height uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.tip = height
}

// KnownTip returns the newest height that the node showed, 0 for none.
func (n *Node) KnownTip() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.tip
}

// BackingOff returns a Failure while the node wants to be left alone for longer than a call would wait, else nil.
func (n *Node) BackingOff() *Failure {
	wait := n.throttledFor()
	if wait <= n.patience() {
		return nil
	}

	failure := n.Fail(Throttled, "it asked to be left alone for a while")
	failure.RetryAfter = wait

	return failure
}

// throttledFor returns what remains of the node's Retry-After.
func (n *Node) throttledFor() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()

	return max(0, time.Until(n.throttledUntil))
}

// markFailed starts or extends the node's back-off, which grows with each failure in a row.
func (n *Node) markFailed() {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.backOffUntil = time.Now().Add(n.nextBackOff())
}

// demote has other nodes preferred for as long as a failure would. The node answers all the same: it may be another
// one that lies.
func (n *Node) demote() {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.demotedUntil = time.Now().Add(n.nextBackOff())
}

func (n *Node) nextBackOff() time.Duration {
	if n.backOff == nil {
		n.backOff = backoff.NewExponentialBackOff()
	}

	return n.backOff.NextBackOff()
}

// isFailing reports whether the node backs off after a failure.
func (n *Node) isFailing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return time.Now().Before(n.backOffUntil)
}

// markHealthy ends the node's back-off.
func (n *Node) markHealthy() {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.backOff, n.backOffUntil = nil, time.Time{}
}

// penalty returns 2 while the node backs off or is demoted, plus 1 when its tip is below need.
func (n *Node) penalty(need uint64) (penalty int) {
	n.mu.Lock()
	defer n.mu.Unlock()

	if now := time.Now(); now.Before(n.backOffUntil) || now.Before(n.demotedUntil) {
		penalty += 2
	}

	if n.tip != 0 && n.tip < need {
		penalty++
	}

	return penalty
}
