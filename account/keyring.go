package account

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// maxOverlap is the longest time that a rolled key goes on working.
const maxOverlap = 168 * time.Hour

const maxAllowlist = 100 // addresses or ranges of one allowlist

// KeyParams are the parameters of CreateKey.
type KeyParams struct {
	AccountID string
	Livemode  bool
	// Publishable keys read reference data only, and have no scopes.
	Publishable bool
	// Name is a label for people, at most 80 characters.
	Name string
	// Scopes default to all but payouts:write, payouts:approve and refunds:write.
	Scopes []Scope
	// AllowedIPs are the addresses or CIDR ranges that may use the key; empty: any address.
	AllowedIPs []string
	// Destinations are the allowed destinations of payouts and refunds, also of those that the key only
	// approves. A destination without a network stands for the address on every network of the mode that can
	// parse it now. Networks that are added later are not included.
	Destinations []chain.Destination
	// ExpiresAt ends the key; zero: never.
	ExpiresAt time.Time
}

// CreateKey makes a key and returns it with its secret, which cannot be read again.
//
// Errors: fault.NotFound for an unknown account, fault.Invalid for a parameter that breaks a rule.
func (s *Service) CreateKey(ctx context.Context, p KeyParams) (Key, string, error) {
	k, err := s.keyOf(p)
	if err != nil {
		return Key{}, "", err
	}

	secret, hash, err := GenerateKey(s.prefix, p.Livemode, p.Publishable, s.entropy)
	if err != nil {
		return Key{}, "", err
	}

	k.ID, k.Hash, k.Last4, k.CreatedAt = s.ids.Next(), hash, last4(secret), s.stamp()

	var created Key

	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		a, err := s.VerifyIn(ctx, tx, p.AccountID)
		if err != nil {
			return err
		}

		if err := checkPaying(k, a.Settings); err != nil {
			return err
		}

		created = k
		if err := s.sealKey(&created); err != nil {
			return err
		}

		return tx.PutKey(ctx, &created)
	})
	if err != nil {
		return Key{}, "", err
	}

	return created, secret, nil
}

// keyOf checks the parameters and returns them in the stored form.
func (s *Service) keyOf(p KeyParams) (Key, error) {
	if err := checkName("name", p.Name); err != nil {
		return Key{}, err
	}

	scopes := slices.Clone(p.Scopes)
	switch {
	case p.Publishable && len(scopes) > 0:
		return Key{}, fault.Param(
			"scopes", "key_invalid",
			"a publishable key reads reference data only and has no scopes",
		)
	case !p.Publishable && scopes == nil:
		scopes = defaultScopes()
	}

	known := AllScopes()
	for i, scope := range scopes {
		if !slices.Contains(known, scope) || slices.Contains(scopes[:i], scope) {
			return Key{}, fault.Param(
				"scopes", "key_invalid", "%q is no scope (or it is twice in the list)",
				shortened(string(scope)),
			)
		}
	}

	ips, destinations, err := s.canonicalAllowlists(p.AllowedIPs, p.Destinations, nil, p.Livemode)
	if err != nil {
		return Key{}, err
	}

	if !p.ExpiresAt.IsZero() && !p.ExpiresAt.After(s.now()) {
		return Key{}, fault.Param("expires_at", "key_invalid", "expires_at is in the past")
	}

	return Key{
		Owner:        event.Owner{AccountID: p.AccountID, Livemode: p.Livemode},
		Publishable:  p.Publishable,
		Name:         p.Name,
		Scopes:       scopes,
		AllowedIPs:   ips,
		Destinations: destinations,
		ExpiresAt:    p.ExpiresAt.UTC().Truncate(time.Millisecond),
	}, nil
}

// RollKey replaces a key by a new one with the same permissions, and returns it with its secret.
// The old key goes on working for overlap, 0 to 168 hours, but not beyond its own expiry.
//
// Errors: fault.State, code key_not_live, for a revoked or expired key, and for one that was rolled before.
func (s *Service) RollKey(
	ctx context.Context,
	accountID, keyID string,
	overlap time.Duration,
) (Key, string, error) { // spec D9.10
	if overlap < 0 || overlap > maxOverlap {
		return Key{}, "", fault.Param(
			"overlap", "key_invalid", "the overlap is %v: it must be 0 to %v",
			overlap, maxOverlap,
		)
	}

	old, err := findKey(ctx, s.db, accountID, keyID)
	if err != nil {
		return Key{}, "", err
	}

	secret, hash, err := GenerateKey(s.prefix, old.Owner.Livemode, old.Publishable, s.entropy)
	if err != nil {
		return Key{}, "", err
	}

	newID, at := s.ids.Next(), s.stamp()

	var created Key

	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		old, err := findKey(ctx, tx, accountID, keyID)
		if err != nil {
			return err
		}

		if err := s.checkKey(old); err != nil {
			return err
		}

		if err := checkRoll(ctx, tx, old, at); err != nil {
			return err
		}

		created = old
		created.ID, created.Hash, created.Last4, created.CreatedAt = newID, hash, last4(secret), at

		created.RolledFrom, created.Version = old.ID, 0
		if end := at.Add(overlap); old.ExpiresAt.IsZero() || end.Before(old.ExpiresAt) {
			old.ExpiresAt = end
		}

		return s.putKeys(ctx, tx, &old, &created)
	})
	s.seen.clear()

	if err != nil {
		return Key{}, "", err
	}

	return created, secret, nil
}

// checkRoll refuses to roll a key that is revoked or expired, or that another key replaced: the expiry of a
// replaced key is the end of an overlap, not a date that its owner set.
func checkRoll(ctx context.Context, r Reader, old Key, at time.Time) error {
	keys, err := r.Keys(ctx, old.Owner.AccountID)
	if err != nil {
		return err
	}

	replaced := slices.IndexFunc(keys, func(k Key) bool { return k.RolledFrom == old.ID })

	switch {
	case replaced >= 0:
		return fault.New(
			fault.State, "key_not_live",
			"the key %s was replaced by the key %s: roll that one",
			old.ID, keys[replaced].ID,
		)
	case !old.live(at):
		return fault.New(
			fault.State, "key_not_live",
			"the key %s is revoked or expired and cannot be rolled: create a new one",
			old.ID,
		)
	}

	return nil
}

// putKeys seals keys and stores them.
func (s *Service) putKeys(ctx context.Context, tx Tx, keys ...*Key) error {
	for _, k := range keys {
		if err := s.sealKey(k); err != nil {
			return err
		}

		if err := tx.PutKey(ctx, k); err != nil {
			return err
		}
	}

	return nil
}

// RevokeKey ends a key: in this process at once, in others within 5 s. It is idempotent.
func (s *Service) RevokeKey(ctx context.Context, accountID, keyID string) (Key, error) {
	at := s.stamp()

	var revoked Key

	err := s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		k, err := findKey(ctx, tx, accountID, keyID)
		if err != nil {
			return err
		}

		if k.RevokedAt.IsZero() {
			genuine := s.checkKey(k) == nil // else revoking it would give it a tag

			k.RevokedAt = at
			if genuine {
				if err := s.sealKey(&k); err != nil {
					return err
				}
			}

			if err := tx.PutKey(ctx, &k); err != nil {
				return err
			}
		}

		revoked = k

		return nil
	})
	s.seen.clear()

	return revoked, err
}

// Keys returns all keys of an account, newest first, ended ones included.
func (s *Service) Keys(ctx context.Context, accountID string) ([]Key, error) {
	if _, err := s.db.Account(ctx, accountID); err != nil {
		return nil, err
	}

	return s.db.Keys(ctx, accountID)
}

func findKey(ctx context.Context, r Reader, accountID, keyID string) (Key, error) {
	keys, err := r.Keys(ctx, accountID)
	if err != nil {
		return Key{}, err
	}

	for _, k := range keys {
		if k.ID == keyID {
			return k, nil
		}
	}

	return Key{}, fault.Missing("API key", keyID)
}

// canonicalAllowlists checks the allowlists of a key or an account for its modes, and returns them in the
// stored form. The limit counts the addresses of destinations, not their networks: the stored form names each
// network. Destinations that are stored already may stay, even if their networks are no longer served.
func (s *Service) canonicalAllowlists(
	ranges []string,
	destinations, stored []chain.Destination,
	livemodes ...bool,
) ([]string, []chain.Destination, error) {
	addresses := map[chain.Address]bool{}
	for _, d := range destinations {
		addresses[d.Address] = true
	}

	if len(ranges) > maxAllowlist || len(addresses) > maxAllowlist {
		return nil, nil, fault.New(
			fault.Invalid, "key_invalid", "an allowlist has at most %d addresses or ranges",
			maxAllowlist,
		)
	}

	ips, err := canonicalRanges(ranges)
	if err != nil {
		return nil, nil, err
	}

	canonical, err := s.canonicalDestinations(destinations, stored, livemodes...)

	return ips, canonical, err
}

// canonicalRanges returns addresses and CIDR ranges in canonical form: masked, mapped IPv4 as IPv4, and
// without ranges that lie in another one.
func canonicalRanges(in []string) ([]string, error) {
	ranges, err := parseRanges(in)
	if err != nil {
		return nil, err
	}

	var out []string
	for _, p := range ranges {
		out = append(out, p.String())
	}

	return out, nil
}

// parseRanges parses addresses and CIDR ranges, and leaves out those inside another one: no two have a common
// address.
func parseRanges(in []string) ([]netip.Prefix, error) {
	var out []netip.Prefix

	for _, text := range in {
		p, err := parseRange(text)
		if err != nil {
			return nil, fault.Param(
				"allowed_ips", "key_invalid", "%q is no IP address and no CIDR range",
				shortened(text),
			)
		}

		if slices.ContainsFunc(out, func(other netip.Prefix) bool { return contains(other, p) }) {
			continue
		}

		out = slices.DeleteFunc(out, func(other netip.Prefix) bool { return contains(p, other) })
		out = append(out, p)
	}

	return out, nil
}

// contains reports whether all of a range lies in another one.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

func parseRange(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fault.New(fault.Invalid, "key_invalid", "not an IP address")
		}

		a = a.Unmap()

		return netip.PrefixFrom(a, a.BitLen()), nil
	}

	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}

	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fault.New(
				fault.Invalid, "key_invalid", "the range spans more than the mapped IPv4 addresses",
			)
		}

		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}

	return p.Masked(), nil
}

func last4(secret string) string { return secret[len(secret)-4:] }
