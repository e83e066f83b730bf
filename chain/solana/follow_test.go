//go:build unix

package solana_test

// A follower on the driver: what it stores, with a store in memory and a clock that the test sets.

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// followed is a follower with its store, which outlives restarts.
type followed struct {
	t         *testing.T
	driver    chain.Driver
	addresses []chain.Address // newest first
	now       time.Time
	follower  *follow.Follower

	mu     sync.Mutex
	cursor *scan.Cursor
	leases map[string]lease.Lease
	ranges map[string]scan.Range
	read   map[chain.Address]scan.Position
	seen   map[string]chain.Transfer // by transaction hash and receiver
	times  map[string]time.Time      // when each was stored
}

func newFollowed(t *testing.T, d chain.Driver, addresses ...chain.Address) *followed {
	t.Helper()

	f := &followed{
		t:         t,
		driver:    d,
		addresses: addresses,
		now:       time.Unix(1_800_000_000, 0),
		leases:    map[string]lease.Lease{},
		ranges:    map[string]scan.Range{},
		read:      map[chain.Address]scan.Position{},
		seen:      map[string]chain.Transfer{},
		times:     map[string]time.Time{},
	}
	f.restart(d)

	return f
}

// restart puts a new process with a new driver in the place of the old one, whose leases it freed as it stopped.
func (f *followed) restart(d chain.Driver) {
	f.t.Helper()

	clear(f.leases)

	var err error

	f.driver = d
	f.follower, err = follow.New(follow.Config{
		Driver:  d,
		DB:      f,
		Handler: f,
		Owner:   "a",
		Now:     func() time.Time { return f.now },
		Log:     slog.New(slog.DiscardHandler),
		Addresses: func(context.Context, time.Time) (all []chain.AddressCursor, _ error) {
			for _, address := range f.addresses {
				all = append(all, chain.AddressCursor{Address: address})
			}

			return all, nil
		},
	})
	must(f.t, err)
}

// steps lets seconds pass, with steps in each until there is nothing to do.
func (f *followed) steps(seconds int) {
	f.t.Helper()

	for range seconds {
		f.now = f.now.Add(time.Second)

		for range 1000 {
			did, err := f.follower.Step(f.t.Context())
			if err != nil {
				f.t.Logf("step: %v", err)
			}

			if !did {
				break
			}
		}
	}
}

// wants fails the test unless each of the transactions is stored as a transfer to the address.
func (f *followed) wants(to chain.Address, hashes ...string) {
	f.t.Helper()

	for _, hash := range hashes {
		if _, ok := f.seen[hash+"/"+string(to)]; !ok {
			f.t.Errorf("the payment %s to %s is not stored; health: %+v", hash, to, f.follower.Health())
		}
	}
}

// Apply stores the transfers of a batch.
func (f *followed) Apply(ctx context.Context, b follow.Batch) error {
	return f.Update(ctx, func(ctx context.Context, tx scan.Tx) error {
		if _, err := b.Advance(ctx, tx); err != nil {
			return err
		}

		for _, block := range b.Blocks {
			for _, moved := range block.Transfers {
				key := moved.TxHash + "/" + string(moved.To)
				if _, known := f.seen[key]; !known {
					f.times[key] = f.now
				}

				f.seen[key] = moved
			}
		}

		return nil
	})
}

func (f *followed) Update(ctx context.Context, do func(context.Context, scan.Tx) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	leases, ranges := maps.Clone(f.leases), maps.Clone(f.ranges)

	err := do(ctx, followedTx{f})
	if err != nil {
		f.leases, f.ranges = leases, ranges
	}

	return err
}

func (f *followed) Cursor(context.Context, string) (scan.Cursor, bool, error) {
	if f.cursor == nil {
		return scan.Cursor{}, false, nil
	}

	return *f.cursor, true, nil
}

func (f *followed) Ranges(_ context.Context, _ string, limit int) (all []scan.Range, _ error) {
	for _, id := range slices.Sorted(maps.Keys(f.ranges)) {
		all = append(all, f.ranges[id])
	}

	return all[:min(limit, len(all))], nil
}

func (f *followed) Positions(
	_ context.Context,
	_ string,
	addresses []chain.Address,
) (found []scan.Position, _ error) {
	for _, address := range addresses {
		if p, ok := f.read[address]; ok {
			found = append(found, p)
		}
	}

	return found, nil
}

func (f *followed) Retries(context.Context, string, time.Time, int) ([]scan.Retry, error) {
	return nil, nil
}

// followedTx is a transaction of the store.
type followedTx struct{ *followed }

func (tx followedTx) Leases(context.Context, []string) (map[string]lease.Lease, error) {
	return maps.Clone(tx.leases), nil
}

func (tx followedTx) ReadLeases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	return tx.Leases(ctx, names)
}

func (tx followedTx) ReplaceLease(ctx context.Context, _, l lease.Lease) error {
	return tx.PutLease(ctx, l)
}

func (tx followedTx) PutLease(_ context.Context, l lease.Lease) error {
	tx.leases[l.Name] = l
	return nil
}

func (tx followedTx) PutCursor(_ context.Context, c *scan.Cursor) error {
	moved := *c
	tx.cursor = &moved

	return nil
}

func (tx followedTx) PutPosition(_ context.Context, p *scan.Position) error {
	tx.read[p.Address] = *p
	return nil
}

func (tx followedTx) PutRange(_ context.Context, r *scan.Range) error {
	tx.ranges[r.ID] = *r
	return nil
}

func (tx followedTx) DeleteRange(_ context.Context, id string) error {
	delete(tx.ranges, id)
	return nil
}

func (tx followedTx) PutRetry(context.Context, *scan.Retry) error { return nil }

func (tx followedTx) DeleteRetry(context.Context, string) error { return nil }
