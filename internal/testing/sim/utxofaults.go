package sim

// Controls of the node of UTXO and Windows: failing calls, lag, pruning and time.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// call counts a node call and returns its injected fault. The caller does not hold mu.
func (n *baseNode) call(ctx context.Context, method Method) error {
	n.mu.Lock()
	n.faults.calls[method]++
	n.faults.calls[AnyMethod]++
	intercept := n.faults.intercept

	var queued error

	for _, key := range []Method{method, AnyMethod} {
		if errs := n.faults.queued[key]; len(errs) > 0 {
			queued, n.faults.queued[key] = errs[0], errs[1:]
			break
		}
	}

	n.mu.Unlock()

	if intercept != nil {
		if err := intercept(ctx, method); err != nil {
			return err
		}
	}

	if err := ctx.Err(); err != nil {
		return fault.Wrap(
			err, fault.Unavailable, "node_unavailable", "network %s did not answer %s",
			n.network.Slug, method,
		)
	}

	return queued
}

// lostResponse returns the result of a broadcast: err, or a timeout after LoseNextResponses.
func (n *baseNode) lostResponse(err error) error {
	if n.faults.lostResponses == 0 {
		return err
	}

	n.faults.lostResponses--

	return fault.Wrap(
		context.DeadlineExceeded, fault.Unavailable, "node_unavailable",
		"network %s did not answer Broadcast in time",
		n.network.Slug,
	)
}

// FailNext makes the next calls of a method, times in number, return err without effect.
func (n *baseNode) FailNext(method Method, err error, times int) {
	n.mu.Lock()
	defer n.mu.Unlock()

	for range times {
		n.faults.queued[method] = append(n.faults.queued[method], err)
	}
}

// LoseNextResponses makes the next broadcasts, times in number, take effect and return a timeout.
func (n *baseNode) LoseNextResponses(times int) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.faults.lostResponses += times
}

// SetIntercept replaces the configured Intercept; nil removes it. The function runs before the call has
// an effect, without a lock held. It may block, use the controls, or return the error of the call.
func (n *baseNode) SetIntercept(intercept func(ctx context.Context, method Method) error) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.faults.intercept = intercept
}

// Calls returns the number of calls of a method, failed ones included.
func (n *baseNode) Calls(method Method) int {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.faults.calls[method]
}

// Lag makes the node answer from a block that many blocks below the tip; 0 ends it. Broadcast still
// reaches the whole network.
func (n *baseNode) Lag(blocks uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.lag = blocks
}

// LagSecond makes the second node, which has to agree, answer from a block that many blocks below the tip.
func (n *baseNode) LagSecond(blocks uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.secondLag = blocks
}

// Prune removes the blocks below a height from the node.
func (n *baseNode) Prune(below uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.pruned = below
}

// SetClock replaces the configured clock and resets Advance.
func (n *baseNode) SetClock(clock func() time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.clock, n.clockOffset = clock, 0
}

// Advance moves the network's time forward relative to its clock. It mines no block.
func (n *baseNode) Advance(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.clockOffset += d
}

// Now returns the network's time.
func (n *baseNode) Now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.now()
}
