package checkout

// How often one client may ask, and who a client is.

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// An allowance is a bucket that refills at PerSecond up to Burst.
type allowance struct{ PerSecond, Burst int }

var (
	// readRate is per client address: a page, its state and a logo, for a household behind one address.
	readRate = allowance{20, 100}
	// actRate is per invoice and client address: a selection derives an address and asks for prices, a hint asks a node.
	actRate = allowance{1, 6}
)

// maxStreams is how many event streams one client address may hold open in this process.
const maxStreams = 32

// maxBuckets bounds the limiter's memory; full buckets are forgotten when it is reached, then all.
const maxBuckets = 50_000

// localLimiter is the store.Limiter of one process. A bucket is kept as the time at which it is full again.
type localLimiter struct {
	now func() time.Time

	mu   sync.Mutex
	full map[string]time.Time
}

func newLocalLimiter(now func() time.Time) *localLimiter {
	return &localLimiter{now: now, full: map[string]time.Time{}}
}

// Allow implements store.Limiter.
func (l *localLimiter) Allow(_ context.Context, key string, perSecond, burst int) (bool, int, error) {
	token := time.Second / time.Duration(perSecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	full := l.full[key]
	if full.Before(now) {
		full = now
	}
	if empty := now.Add(time.Duration(burst) * token); full.After(empty) { // the burst was larger
		full = empty
		l.full[key] = empty
	}
	after := full.Add(token)
	if over := after.Sub(now) - time.Duration(burst)*token; over > 0 {
		return false, int((over + time.Second - 1) / time.Second), nil
	}
	if len(l.full) >= maxBuckets {
		l.forget(now)
	}
	l.full[key] = after
	return true, 0, nil
}

func (l *localLimiter) forget(now time.Time) {
	for key, full := range l.full {
		if !full.After(now) {
			delete(l.full, key)
		}
	}
	if len(l.full) >= maxBuckets {
		clear(l.full)
	}
}

// streamCount counts the open event streams of each client.
type streamCount struct {
	mu   sync.Mutex
	open map[string]int
}

// enter takes a place, or reports that the client has all it may have.
func (c *streamCount) enter(client string) bool {
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

func (c *streamCount) leave(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[client]--; c.open[client] <= 0 {
		delete(c.open, client)
	}
}

// clientOf names who asks: the peer's address, or behind trusted proxies the right-most hop of X-Forwarded-For that
// is not one of them. IPv6 clients are told apart by their /64, which one household has to itself.
func clientOf(r *http.Request, trusted []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isTrusted(addr, trusted); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = hop
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		return netip.PrefixFrom(addr, 64).Masked().String()
	}
	return addr.String()
}

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	for _, p := range trusted {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}
