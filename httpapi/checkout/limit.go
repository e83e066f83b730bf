package checkout

import (
	"net/http"
	"net/netip"
	"sync"

	"github.com/seed-8ee7f392/payments/internal/limit"
)

// allowance is a token bucket that refills at PerSecond up to Burst.
type allowance struct{ PerSecond, Burst int }

var (
	// readRate is per client address, which several visitors may share.
	readRate = allowance{20, 100}
	// formRate is per form, invoice and client address: a selection derives an address and reads
	// prices, a hint queries a node.
	formRate = allowance{1, 6} // spec D10.6
)

// maxStreams is the number of event streams that one client address may have open in this process.
const maxStreams = 32

// streamCount counts the open event streams of each client.
type streamCount struct {
	mu   sync.Mutex
	open map[string]int
}

// acquire counts a stream of the client; false when it has maxStreams already.
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

// release ends a stream that acquire counted.
func (c *streamCount) release(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.open[client]--; c.open[client] <= 0 {
		delete(c.open, client)
	}
}

// clientOf returns the client's rate limit key: its IPv4 address, or the /64 of its IPv6 address,
// which is what one subscriber gets (RFC 6177). Clients without a known address share a key.
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
