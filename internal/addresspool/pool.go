// Package addresspool derives deposit addresses in advance of the requests that need them. A process holds a
// few for each network, and more if more are taken. Each address has an index that was reserved for it, and
// is given out once. The addresses that a process holds when it ends are lost: their indexes are never used.
package addresspool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/counter"
)

const (
	// least and most bound how many addresses of a network are held.
	least = 16
	most  = 512
	// together is how many addresses are derived at once.
	together = 64
)

// Keys returns the public keys that addresses are derived from. Every chain.Signer implements it.
type Keys interface {
	PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error)
}

// Config holds what a Pool needs; all of it is required.
type Config struct {
	Registry *chain.Registry
	Keys     Keys
	// Reserve takes n consecutive numbers of a counter that starts at 0, and returns the first.
	Reserve func(ctx context.Context, counter string, n int) (int64, error)
}

// Pool holds addresses by network. It is safe for concurrent use.
type Pool struct {
	registry *chain.Registry
	keys     Keys
	reserve  func(ctx context.Context, counter string, n int) (int64, error)
	low      chan struct{}

	mu       sync.Mutex
	networks map[string]*held
}

// held holds the addresses of a network.
type held struct {
	ready  []chain.Party
	target int // the wanted number of addresses
}

// New returns an empty pool. It starts nothing.
func New(c Config) *Pool {
	return &Pool{
		registry: c.Registry,
		keys:     c.Keys,
		reserve:  c.Reserve,
		low:      make(chan struct{}, 1),
		networks: map[string]*held{},
	}
}

// Take returns an address that is given to no other caller; ok is false if none is held. From then on, the
// empty pool holds twice as many.
func (p *Pool) Take(network string) (taken chain.Party, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	h := p.networks[network]
	if h == nil {
		return chain.Party{}, false // Step has not filled it yet
	}

	if ok = len(h.ready) > 0; ok {
		taken, h.ready = h.ready[0], h.ready[1:]
	} else {
		h.target = min(2*h.target, most)
	}

	if len(h.ready) <= h.target/2 {
		select {
		case p.low <- struct{}{}:
		default:
		}
	}

	return taken, ok
}

// Low receives when a network has at most half of its wanted addresses.
func (p *Pool) Low() <-chan struct{} { return p.low }

// Step derives the missing addresses of each network, and reports whether there were any. If one network
// fails, the others are still filled.
func (p *Pool) Step(ctx context.Context) (did bool, err error) {
	for _, driver := range p.registry.Drivers() {
		deriver, ok := driver.(chain.Deriver)
		if !ok {
			continue
		}

		n := driver.Network()

		missing := p.missing(n.Slug)
		if missing == 0 {
			continue
		}

		did = true

		if failed := p.fill(ctx, n, deriver, missing); failed != nil {
			err = errors.Join(err, fmt.Errorf("deriving addresses of %s: %w", n.Slug, failed))
		}
	}

	return did, err
}

// missing returns how many addresses of a network to derive; 0 while more than half are there.
func (p *Pool) missing(network string) int {
	p.mu.Lock()
	defer p.mu.Unlock()

	h := p.networks[network]
	if h == nil {
		h = &held{target: least}
		p.networks[network] = h
	}

	if len(h.ready) > h.target/2 {
		return 0
	}

	return h.target - len(h.ready)
}

// fill reserves indexes and derives their addresses. If a batch fails, its indexes are lost.
func (p *Pool) fill(ctx context.Context, n chain.Network, deriver chain.Deriver, missing int) error {
	first, err := p.reserve(ctx, counter.DerivationIndex(n.Space()), missing)
	if err != nil {
		return err
	}

	for done := 0; done < missing; done += together {
		keys := keysAt(n, first+int64(done), min(together, missing-done))

		made, err := p.derive(ctx, deriver, keys)
		if err != nil {
			return err
		}

		p.mu.Lock()
		h := p.networks[n.Slug]
		h.ready = append(h.ready, made...)
		p.mu.Unlock()
	}

	return nil
}

// keysAt returns the deposit keys at consecutive indexes, as far as they exist: BIP-32 has 2^31 indexes that
// are not hardened.
func keysAt(n chain.Network, first int64, count int) (keys []chain.KeyRef) {
	for index := first; index < first+int64(count) && index <= math.MaxInt32; index++ {
		keys = append(keys, chain.KeyRef{
			Family:   n.Family,
			Livemode: n.Livemode,
			Role:     chain.RoleDeposit,
			Index:    uint32(index),
		})
	}

	return keys
}

// many is implemented by signers that return many public keys at a lower cost than one by one.
type many interface {
	PublicKeys(ctx context.Context, keys []chain.KeyRef) ([]chain.PublicKey, error)
}

// derive returns the addresses of keys.
func (p *Pool) derive(
	ctx context.Context,
	deriver chain.Deriver,
	keys []chain.KeyRef,
) ([]chain.Party, error) {
	public, err := p.publicKeys(ctx, keys)
	if err != nil {
		return nil, err
	}

	made := make([]chain.Party, len(keys))

	for i, key := range keys {
		address, err := deriver.DeriveAddress(public[i])
		if err != nil {
			return nil, fmt.Errorf("making the address of key %s: %w", key, err)
		}

		made[i] = chain.Party{Key: key, Address: address}
	}

	return made, nil
}

// publicKeys returns the public keys, in one call if the signer can.
func (p *Pool) publicKeys(ctx context.Context, keys []chain.KeyRef) ([]chain.PublicKey, error) {
	if signer, ok := p.keys.(many); ok {
		public, err := signer.PublicKeys(ctx, keys)
		if err == nil && len(public) != len(keys) {
			err = fmt.Errorf("the signer gave %d public keys for %d", len(public), len(keys))
		}

		return public, err
	}

	public := make([]chain.PublicKey, len(keys))

	for i, key := range keys {
		var err error
		if public[i], err = p.keys.PublicKey(ctx, key); err != nil {
			return nil, fmt.Errorf("reading public key %s: %w", key, err)
		}
	}

	return public, nil
}
