package account

import (
	"context"
	"crypto/subtle"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// cacheTTL is how long Authenticate may use its cache: a key that another process revoked works
// here for at most that long. Changes by this process apply at once.
const cacheTTL = 5 * time.Second

const cacheSize = 4096 // keys

// Authenticate returns the key of a secret, with its account.
//
// Errors:
//   - fault.Unauthenticated: code api_key_invalid, api_key_expired or api_key_revoked
//   - fault.Forbidden, code ip_not_allowed: the client is not on the allowlist of the key or of its account
//   - fault.Unavailable, code account_damaged: its settings were not set through this service
//   - fault.Limited, code rate_limited: too many unknown keys were tried; a key that this process has
//     seen before is not affected
func (s *Service) Authenticate(ctx context.Context, secret string, client netip.Addr) (Key, Account, error) {
	// spec D5.14
	if _, err := parseKey(secret); err != nil {
		return Key{}, Account{}, err
	}

	hash, now := HashKey(secret), s.now()

	known, ok, generation := s.seen.get(hash, now)
	if !ok {
		k, a, err := s.lookUp(ctx, hash, client, now)
		if err == nil {
			err = s.checkKey(k)
		}

		if err == nil {
			err = s.checkAccountOf(a, k.Owner.AccountID)
		}

		if err != nil {
			return Key{}, Account{}, err
		}

		known = seenKey{key: k, account: a, until: now.Add(cacheTTL)}
		s.seen.put(hash, known, generation)
	}

	k := known.key
	if subtle.ConstantTimeCompare(k.Hash[:], hash[:]) != 1 {
		return Key{}, Account{}, unknownKey()
	}

	if !k.RevokedAt.IsZero() {
		return Key{}, Account{}, fault.New(
			fault.Unauthenticated, "api_key_revoked", "the API key %s was revoked: use another one",
			k.ID,
		)
	}

	if !k.live(now) {
		return Key{}, Account{}, fault.New(
			fault.Unauthenticated, "api_key_expired",
			"the API key %s expired: use the one that replaced it",
			k.ID,
		)
	}

	if !allowsIP(k.AllowedIPs, client) || !allowsIP(known.account.Settings.AllowedIPs, client) {
		return Key{}, Account{}, fault.New(
			fault.Forbidden,
			"ip_not_allowed",
			"the API key %s may not be used from this IP address: the allowlists of key and account must have it",
			k.ID,
		)
	}

	return k, known.account, nil
}

func unknownKey() error {
	return fault.New(
		fault.Unauthenticated, "api_key_invalid",
		"no such API key: check that it was copied whole and belongs to this service",
	)
}

// Allows reports whether the key holds a scope.
func (k Key) Allows(scope Scope) bool { return slices.Contains(k.Scopes, scope) }

// allowsIP reports whether a client of this address is on an allowlist; an empty list contains every client.
// An unknown address (the zero value) is on no other list.
func allowsIP(allowlist []string, client netip.Addr) bool {
	if len(allowlist) == 0 {
		return true
	}

	client = client.Unmap().WithZone("")
	for _, text := range allowlist {
		if p, err := parseRange(text); err == nil && p.Contains(client) {
			return true
		}
	}

	return false
}

// seen caches known keys for cacheTTL. It is bounded, and unknown keys are not in it, so that nobody can
// fill it by guessing.
type seen struct {
	mu         sync.Mutex
	keys       map[[32]byte]seenKey
	generation int // counts calls of clear; a key that was read before a clear is not cached after it
}

type seenKey struct {
	key     Key
	account Account
	until   time.Time
}

func (c *seen) get(hash [32]byte, now time.Time) (k seenKey, ok bool, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	k, ok = c.keys[hash]
	if ok && !now.Before(k.until) {
		delete(c.keys, hash)
		return seenKey{}, false, c.generation
	}

	return k, ok, c.generation
}

func (c *seen) put(hash [32]byte, k seenKey, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if generation != c.generation {
		return
	}

	if c.keys == nil || len(c.keys) >= cacheSize {
		c.keys = make(map[[32]byte]seenKey, 64)
	}

	c.keys[hash] = k
}

func (c *seen) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.generation++
	c.keys = nil
}
