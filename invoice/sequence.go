package invoice

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/counter"
)

// sequences returns invoice numbers and derivation indexes. A process reserves them in ranges, each in a
// transaction of its own, so that creations never queue on one row; gaps are allowed. The first range of a
// process has one number, and each next one has twice as many, up to size. So a restarted process skips no
// more numbers than it used.
type sequences struct {
	db   database
	size int

	mu       sync.Mutex
	counters map[string]*sequence
}

// sequence is the unused remainder of a range.
type sequence struct {
	mu         sync.Mutex
	next, left int64
	// taken is the size of the last range.
	taken int
}

// take returns the next number of a counter that starts at first.
func (n *sequences) take(ctx context.Context, name string, first int64) (int64, error) {
	n.mu.Lock()

	c := n.counters[name]
	if c == nil {
		c = &sequence{}
		n.counters[name] = c
	}
	n.mu.Unlock()

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.left == 0 {
		var start int64

		size := min(max(2*c.taken, 1), n.size)

		err := n.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
			start, err = tx.ReserveNumbers(ctx, name, size, first)
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("reserving numbers of %s: %w", name, err)
		}

		c.next, c.left, c.taken = start, int64(size), size
	}

	c.next, c.left = c.next+1, c.left-1

	return c.next - 1, nil
}

// skipTo reserves all indexes up to index, so that later ranges start above it.
func (n *sequences) skipTo(ctx context.Context, name string, index uint32) error {
	return n.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		next, err := tx.ReserveNumbers(ctx, name, 1, 0)
		if err != nil || next >= int64(index) {
			return err
		}

		_, err = tx.ReserveNumbers(ctx, name, int(int64(index)-next), 0)

		return err
	})
}

// countDeposit takes a number of the account's deposit addresses. It returns fault.State when the account has
// as many as it may have.
func (s *Service) countDeposit(ctx context.Context, owner event.Owner) error {
	if s.deposits <= 0 {
		return nil
	}

	number, err := s.numbers.take(ctx, counter.DepositNumber(owner), 1)
	if err != nil || number <= int64(s.deposits) {
		return err
	}

	return fault.New(
		fault.State, "deposit_address_limit_exceeded",
		"this account has made %d deposit addresses, as many as it may: ask for a higher limit",
		s.deposits,
	)
}

// derived is a fresh address with its key reference.
type derived struct {
	party   chain.Party
	network chain.Network
}

// derive returns the next deposit address of a network's key space. Live and test keys differ: the mode is
// part of the space.
func (s *Service) derive(ctx context.Context, network string) (derived, error) {
	driver, err := s.registry.Driver(network)
	if err != nil {
		return derived{}, err
	}

	deriver, ok := driver.(chain.Deriver)
	if !ok {
		return derived{}, fault.New(
			fault.Unsupported, "address_unsupported",
			"the driver of network %s cannot make addresses",
			network,
		)
	}

	n := driver.Network()

	if s.ahead != nil {
		if party, ok := s.ahead.Take(network); ok {
			return derived{party: party, network: n}, nil
		}
	}

	index, err := s.numbers.take(ctx, counter.DerivationIndex(n.Space()), 0)
	if err != nil {
		return derived{}, err
	}

	if index > math.MaxInt32 { // BIP-32 has 2^31 indexes that are not hardened
		return derived{}, fault.New(
			fault.Unavailable, "addresses_used_up",
			"key space %s has no index left for another address",
			n.Space(),
		)
	}

	key := chain.KeyRef{Family: n.Family, Livemode: n.Livemode, Role: chain.RoleDeposit, Index: uint32(index)}
	address, err := s.addressOf(ctx, deriver, key)

	return derived{party: chain.Party{Key: key, Address: address}, network: n}, err
}

// addressOf returns the address of a key.
func (s *Service) addressOf(
	ctx context.Context,
	deriver chain.Deriver,
	key chain.KeyRef,
) (chain.Address, error) {
	public, err := s.keys.PublicKey(ctx, key)
	if err != nil {
		return "", fmt.Errorf("reading public key %s: %w", key, err)
	}

	address, err := deriver.DeriveAddress(public)
	if err != nil {
		return "", fmt.Errorf("making the address of key %s: %w", key, err)
	}

	return address, nil
}

// tokenAccount returns where an address holds a token, or "" on networks without token accounts.
func (s *Service) tokenAccount(owner chain.Address, asset chain.Asset) (chain.Address, error) { // spec 2.2.7
	driver, err := s.registry.Driver(asset.Network)
	if err != nil {
		return "", err
	}

	accounter, ok := driver.(chain.TokenAccounter)
	if !ok || asset.Kind != chain.Token {
		return "", nil
	}

	return accounter.TokenAccount(owner, asset)
}
