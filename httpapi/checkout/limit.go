package checkout

import (
	"sync"

	"github.com/seed-8ee7f392/payments/internal/limit"
)

// allowance is a token bucket that refills at PerSecond up to Burst.
type allowance struct{ PerSecond, Burst int }

// perSecond returns the allowance of a budget of limits.Table.
func perSecond(n int) allowance { return allowance{n, n * limit.Burst} }

var (
	// readRate is per client address, which several visitors may share.
	readRate = allowance{20, 100}
	// formRate is per form, invoice and client address: a selection derives an address and reads
	// prices, a hint queries a node.
	formRate = allowance{1, 6} // spec D10.6
)

// streamCount counts the open event streams, of all clients and of each.
type streamCount struct {
	most, ofClient int

	mu   sync.Mutex
	all  int
	open map[string]int
}

// acquire counts a stream of the client; false if the client, or all clients together, have reached the
// limit.
func (c *streamCount) acquire(client string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.all >= c.most || c.open[client] >= c.ofClient {
		return false
	}

	if c.open == nil {
		c.open = map[string]int{}
	}

	c.all++
	c.open[client]++

	return true
}

// release ends a stream that acquire counted.
func (c *streamCount) release(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.all--
	if c.open[client]--; c.open[client] <= 0 {
		delete(c.open, client)
	}
}
