package sim

// Faults at the push of a button: what goes wrong between a driver and its node.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// Method names a call that would go over the wire to a node.
type Method string

// The methods. AnyMethod stands for all of them in FailNext and Calls.
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
	MethodPlanRelease Method = "PlanRelease"
)

type faults struct {
	intercept func(context.Context, Method) error
	queued    map[Method][]error
	lost      int // broadcasts whose answer gets lost
	calls     map[Method]int
}

func newFaults(intercept func(context.Context, Method) error) faults {
	return faults{intercept: intercept, queued: map[Method][]error{}, calls: map[Method]int{}}
}

// call is the wire: every method of the driver that reads the network passes here first, without
// the lock held.
func (c *Chain) call(ctx context.Context, method Method) error {
	c.mu.Lock()
	c.faults.calls[method]++
	c.faults.calls[AnyMethod]++
	intercept := c.faults.intercept
	queued := c.takeFault(method)
	c.mu.Unlock()

	if intercept != nil {
		if err := intercept(ctx, method); err != nil {
			return err
		}
	}

	if err := ctx.Err(); err != nil {
		return fault.Wrap(
			err, fault.Unavailable, "node_unavailable", "network %s did not answer %s",
			c.network.Slug, method,
		)
	}

	return queued
}

func (c *Chain) takeFault(method Method) error {
	for _, m := range []Method{method, AnyMethod} {
		if q := c.faults.queued[m]; len(q) > 0 {
			c.faults.queued[m] = q[1:]
			return q[0]
		}
	}

	return nil
}

// Unavailable is an error as a driver returns it when its node does not answer; for FailNext.
func Unavailable() error {
	return fault.Wrap(
		context.DeadlineExceeded, fault.Unavailable, "node_unavailable",
		"the simulated node did not answer",
	)
}

// FailNext makes the next calls of a method fail with err, as many times as told. The failed calls
// have no effect.
func (c *Chain) FailNext(method Method, err error, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for range times {
		c.faults.queued[method] = append(c.faults.queued[method], err)
	}
}

// LoseResponseNext lets the next broadcasts take effect while the caller is told of a time-out.
func (c *Chain) LoseResponseNext(times int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.faults.lost += times
}

// SetIntercept replaces Config.Intercept; nil removes it. The function runs before the call has any
// effect and without a lock held: it may block, count, use the controls, or return the error that
// the call shall fail with.
func (c *Chain) SetIntercept(intercept func(ctx context.Context, method Method) error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.faults.intercept = intercept
}

// Calls returns how often a method was called, failed calls included.
func (c *Chain) Calls(method Method) int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.faults.calls[method]
}

// Lag makes the node answer from a block that many below the tip, as a replica that fell behind; 0 ends it.
// Broadcast still reaches the whole network.
func (c *Chain) Lag(blocks uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.lag = blocks
}

// Prune makes the node forget the blocks below a height.
func (c *Chain) Prune(below uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.pruned = below
}

// SetClock replaces Config.Clock and takes back what Advance did.
func (c *Chain) SetClock(clock func() time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.clock, c.shift = clock, 0
}

// Advance moves the network's time forward of its clock. It mines nothing.
func (c *Chain) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.shift += d
}

// Now returns the network's time.
func (c *Chain) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.now()
}
