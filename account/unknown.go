package account

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/limits"
)

// unknownSize bounds each of the two sets of hashes, in entries.
const unknownSize = 16384

// unknown keeps guessed keys away from the store. It remembers for cacheTTL which keys were unknown, and has
// a budget for new ones. Keys that were found once are looked up even without budget.
type unknown struct {
	buckets *limit.Buckets

	mu    sync.Mutex
	tried map[[32]byte]time.Time // until when a hash counts as unknown
	found map[[32]byte]bool
}

// lookUp reads a key that is not cached from the store.
func (s *Service) lookUp(
	ctx context.Context,
	hash [32]byte,
	client netip.Addr,
	now time.Time,
) (Key, Account, error) {
	found, tried := s.unknown.state(hash, now)
	if tried {
		return Key{}, Account{}, unknownKey()
	}

	if !found {
		if err := s.unknown.checkBudget(s.limits, client); err != nil {
			return Key{}, Account{}, err
		}
	}

	k, a, err := s.db.KeyByHash(ctx, hash)

	switch {
	case errors.Is(err, fault.NotFound):
		s.unknown.spend(ctx, s.limits, client)
		s.unknown.remember(hash, now.Add(cacheTTL))

		return Key{}, Account{}, unknownKey()
	case err != nil:
		return Key{}, Account{}, err
	}

	s.unknown.recognize(hash)

	return k, a, nil
}

// state reports whether the store ever had the key, and whether it lacked the key within cacheTTL.
func (u *unknown) state(hash [32]byte, now time.Time) (found, tried bool) {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.found[hash], now.Before(u.tried[hash])
}

// checkBudget returns fault.Limited if the client, or the process, has used up its budget.
func (u *unknown) checkBudget(t limits.Table, client netip.Addr) error {
	for _, b := range budgets(t, client) {
		if wait := u.buckets.Wait(b.name, b.perSecond, b.perSecond*limit.Burst); wait > 0 {
			limited := fault.New(
				fault.Limited, "rate_limited",
				"too many unknown API keys were tried: check the key, and wait before the next try",
			)
			limited.RetryAfter = time.Duration(wait) * time.Second

			return limited
		}
	}

	return nil
}

// spend charges an unknown key to the budgets.
func (u *unknown) spend(ctx context.Context, t limits.Table, client netip.Addr) {
	for _, b := range budgets(t, client) {
		_, _, _ = u.buckets.Allow(ctx, b.name, b.perSecond, b.perSecond*limit.Burst)
	}
}

// budget is a bucket's name and the tokens that it gets per second.
type budget struct {
	name      string
	perSecond int
}

// budgets returns the budgets of a client's unknown keys.
func budgets(t limits.Table, client netip.Addr) []budget {
	return []budget{
		{"client/" + limit.ClientKey(client), t.UnknownKeysPerClient},
		{"process", t.UnknownKeys},
	}
}

// remember records that a key is unknown until a time.
func (u *unknown) remember(hash [32]byte, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.tried == nil || len(u.tried) >= unknownSize {
		u.tried = map[[32]byte]time.Time{}
	}

	u.tried[hash] = until
}

// recognize records that the store has a key.
func (u *unknown) recognize(hash [32]byte) {
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.found == nil || len(u.found) >= unknownSize {
		u.found = map[[32]byte]bool{}
	}

	u.found[hash] = true
}
