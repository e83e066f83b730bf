package account

import (
	"math/big"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The widest IP allowlist with which a key may pay to any destination (decisions part 11).
const (
	maxPayingV4   = 1 << 16 // addresses
	maxPayingBits = 80      // of IPv6 addresses: one /48 has 2^80
)

// PayoutDestinations returns the only destinations that the key may pay, nil for any (specification 4.6).
//
// Errors: fault.Forbidden, code payout_allowlist_required, for a key with neither destinations nor an IP
// allowlist that is narrow enough. Whether the client is on the allowlist is Authenticate's to check.
func (k Key) PayoutDestinations() ([]chain.Destination, error) { // spec 5.5
	switch {
	case len(k.Destinations) > 0:
		return k.Destinations, nil
	case len(k.AllowedIPs) > 0 && isSpecific(k.AllowedIPs): // spec 4.6.4
		return nil, nil
	}

	return nil, fault.New(
		fault.Forbidden, "payout_allowlist_required",
		"the API key %s has neither an IP allowlist nor a list of destinations: create one that has",
		k.ID,
	)
}

// PayoutPermissions returns the destinations that the key may pay, as permissions. Only a key that has them all may
// read a stored payout answer of this key (specification part 5).
func (k Key) PayoutPermissions() []string { // spec D11.28
	only, err := k.PayoutDestinations()

	switch {
	case err != nil:
		return nil
	case only == nil:
		return []string{anyDestination}
	}

	permissions := make([]string, len(only))
	for i, d := range only {
		permissions[i] = destinationPermission + d.String()
	}

	return permissions
}

// anyDestination is the permission to pay any destination, which contains those to pay given ones.
const anyDestination = destinationPermission + "*"

const destinationPermission = "destination:"

// checkPaying refuses a key that could pay any destination from too many addresses.
func checkPaying(k Key) error {
	pays := slices.Contains(k.Scopes, PayoutsWrite) || slices.Contains(k.Scopes, RefundsWrite)
	if !pays || len(k.Destinations) > 0 || isSpecific(k.AllowedIPs) {
		return nil
	}

	return fault.Param(
		"allowed_ips", "key_invalid",
		"a key that pays without a list of destinations may have %d IPv4 addresses and one IPv6 /48 at most",
		maxPayingV4,
	)
}

// isSpecific reports whether ranges have together at most maxPayingV4 IPv4 addresses and one IPv6 /48.
func isSpecific(ranges []string) bool { // spec D11.19
	v4, v6 := new(big.Int), new(big.Int)

	for _, text := range ranges {
		p, err := parseRange(text)
		if err != nil {
			return false
		}

		size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
		if p.Addr().Is4() {
			v4.Add(v4, size)
		} else {
			v6.Add(v6, size)
		}
	}

	most := new(big.Int).Lsh(big.NewInt(1), maxPayingBits)

	return v4.Cmp(big.NewInt(maxPayingV4)) <= 0 && v6.Cmp(most) <= 0
}
