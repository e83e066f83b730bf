package checkout

// How often one client may ask, and who a client is.

import (
	"net/http"
	"net/netip"
	"sync"

	"github.com/seed-8ee7f392/payments/internal/limit"
)

// An allowance is a bucket that refills at PerSecond up to Burst.
type allowance struct{ PerSecond, Burst int }

var (
	// readRate is per client address: a page, its state and a logo, for a household behind one address.
	readRate = allowance{20, 100}
	// formRate is per invoice and client address: a selection derives an address and asks for
	// prices, a hint asks a node.
	formRate = allowance{1, 6}
)

// maxStreams is how many event streams one client address may hold open in this process.
const maxStreams = 32

// streamCount counts the open event streams of each client.
type streamCount struct {
	mu   sync.Mutex
	open map[string]int
}

// enter takes a place, or reports that the client has all it may have.
func (c *streamCount) acquire(client string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.open[client] >= maxStreams {
		return false
	}

	if c.open == nil {
		c.open = map[string]int{}
	}

	c.open[client]++

	return true
}

func (c *streamCount) release(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.open[client]--; c.open[client] <= 0 {
		delete(c.open, client)
	}
}

// clientOf names who asks. IPv6 clients are told apart by their /64, which one household has to
// itself; those whose address nobody knows share one name.
func clientOf(r *http.Request, trusted []netip.Prefix) string {
	addr := limit.ClientAddr(r, limit.ForwardedFor, trusted)
	switch {
	case !addr.IsValid():
		return "unknown"
	case addr.Is6():
		return netip.PrefixFrom(addr, 64).Masked().String()
	}

	return addr.String()
}
