package sim

// Controls of calls and time, and of a single node: failing calls, lag and pruning.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// Method is the name of a driver method that calls a node.
type Method string

// The methods. AnyMethod matches all of them in FailNext and Calls.
const (
	AnyMethod         Method = "*"
	MethodHead        Method = "Head"
	MethodRefAt       Method = "RefAt"
	MethodBlocks      Method = "Blocks"
	MethodPool        Method = "Pool"
	MethodTransaction Method = "Transaction"
	MethodBalances    Method = "Balances"
	MethodEstimateFee Method = "EstimateFee"
	MethodNonce       Method = "Nonce"
	MethodBuild       Method = "Build"
	MethodBroadcast   Method = "Broadcast"
	MethodStatus      Method = "Status"
	MethodCheck       Method = "Check"
	MethodPlanSweep   Method = "PlanSweep"
	MethodAgreedHead  Method = "AgreedHead"
	MethodAgreedBlock Method = "AgreedBlock"
	MethodAgreedNonce Method = "AgreedNonce"
)

type faults struct {
	intercept     func(context.Context, Method) error
	queued        map[Method][]error // errors of the next calls
	lostResponses int                // broadcasts to come that take effect and time out
	calls         map[Method]int     // number of calls so far
}

func newFaults(intercept func(context.Context, Method) error) faults {
	return faults{intercept: intercept, queued: map[Method][]error{}, calls: map[Method]int{}}
}

// call counts a call and returns the nodes to ask. injected is the fault of node 0 when that is asked
// first. The caller does not hold mu.
func (c *Chain) call(ctx context.Context, method Method, order func() []*node) (
	nodes []*node,
	injected, err error,
) {
	c.mu.Lock()
	c.faults.calls[method]++
	c.faults.calls[AnyMethod]++
	intercept := c.faults.intercept

	nodes = order()
	if nodes[0] == c.nodes[0] {
		injected = c.nextFault(method)
	}
	c.mu.Unlock()

	if intercept != nil {
		if err := intercept(ctx, method); err != nil {
			return nil, nil, err
		}
	}

	if err := ctx.Err(); err != nil {
		return nil, nil, fault.Wrap(
			err, fault.Unavailable, "node_unavailable", "network %s did not answer %s",
			c.network.Slug, method,
		)
	}

	return nodes, injected, nil
}

// nextFault takes the next injected fault of a method at node 0.
func (c *Chain) nextFault(method Method) error {
	for _, key := range []Method{method, AnyMethod} {
		if queued := c.faults.queued[key]; len(queued) > 0 {
			c.faults.queued[key] = queued[1:]
			return queued[0]
		}
	}

	return nil
}

// Unavailable returns the error of a driver whose node does not answer, for FailNext. It is
// fault.Unavailable.
func Unavailable() error {
	return fault.Wrap(
		context.DeadlineExceeded, fault.Unavailable, "node_unavailable",
		"the simulated node did not answer",
	)
}

// FailNext makes the next calls of a method to node 0, times in number, return err without effect.
func (c *Chain) FailNext(method Method, err error, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for range times {
		c.faults.queued[method] = append(c.faults.queued[method], err)
	}
}

// LoseNextResponses makes the next broadcasts, times in number, take effect and return a timeout.
func (c *Chain) LoseNextResponses(times int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.faults.lostResponses += times
}

// SetIntercept replaces Config.Intercept; nil removes it. The function runs before the call has an
// effect, without a lock held. It may block, use the controls, or return the error of the call.
func (c *Chain) SetIntercept(intercept func(ctx context.Context, method Method) error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.faults.intercept = intercept
}

// Calls returns the number of calls of a method, failed ones included.
func (c *Chain) Calls(method Method) int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.faults.calls[method]
}

// Lag makes node 0 answer from a block that many blocks below the tip; 0 ends it. Broadcast still
// reaches the whole network.
func (c *Chain) Lag(blocks uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.nodes[0].faults.Behind, c.nodes[0].troubledSince = blocks, c.now()
}

// Prune removes the blocks below a height from node 0.
func (c *Chain) Prune(below uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.nodes[0].faults.PrunedBelow = below
}

// SetClock replaces Config.Clock and resets Advance.
func (c *Chain) SetClock(clock func() time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.clock, c.clockOffset = clock, 0
}

// Advance moves the network's time forward relative to its clock. It mines no block.
func (c *Chain) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.clockOffset += d
}

// Now returns the network's time.
func (c *Chain) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.now()
}
