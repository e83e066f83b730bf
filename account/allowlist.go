package account

import (
	"net/netip"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The widest IP allowlist with which a key may pay to any destination (decisions part 11).
const (
	maxPayingV4 = 1 << 16 // addresses
	maxPayingV6 = 48      // bits of the one prefix
)

// PayoutDestinations returns the only destinations that the key may pay, nil for any (specification 4.6).
// These are the destinations on its list and on that of its account, if both have one. An allowlist of the
// account counts as one of the key.
//
// Errors: fault.Forbidden, code payout_allowlist_required, if there are neither destinations nor an IP
// allowlist that is narrow enough; destination_not_allowed, if the two lists have no destination in common.
// Authenticate checks whether the client is on the allowlists.
func (k Key) PayoutDestinations(s Settings) ([]chain.Destination, error) { // spec 5.5
	only, err := k.ApprovalDestinations(s)
	if err != nil || only != nil {
		return only, err
	}

	if isSpecific(k.AllowedIPs) || isSpecific(s.AllowedIPs) { // spec 4.6.4
		return nil, nil
	}

	return nil, fault.New(
		fault.Forbidden, "payout_allowlist_required",
		"the API key %s has neither an IP allowlist nor a list of destinations: create one that has",
		k.ID,
	)
}

// ApprovalDestinations returns the only destinations of payouts that the key may approve, nil for any. These
// are the destinations on its list and on that of its account, if both have one. Approving needs no IP
// allowlist.
//
// Errors: fault.Forbidden, code destination_not_allowed, if the two lists have no destination in common.
func (k Key) ApprovalDestinations(s Settings) ([]chain.Destination, error) {
	switch {
	case len(k.Destinations) > 0 && len(s.Destinations) > 0:
		return k.commonDestinations(s)
	case len(k.Destinations) > 0:
		return k.Destinations, nil
	case len(s.Destinations) > 0:
		return s.Destinations, nil
	}

	return nil, nil
}

// commonDestinations returns the destinations on the lists of the key and of its account: at least one.
func (k Key) commonDestinations(s Settings) ([]chain.Destination, error) {
	var common []chain.Destination

	for _, d := range k.Destinations {
		if slices.Contains(s.Destinations, d) {
			common = append(common, d)
		}
	}

	if common == nil { // nil would mean any
		return nil, fault.New(
			fault.Forbidden, "destination_not_allowed",
			"the account of the API key %s allows none of the key's destinations: set either list anew",
			k.ID,
		)
	}

	return common, nil
}

// PayoutPermissions returns the destinations that the key may pay, as permissions. Another key must have all
// of them to read a stored payout answer of this key (specification part 5).
func (k Key) PayoutPermissions(s Settings) []string { // spec D11.28
	only, err := k.PayoutDestinations(s)

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

// anyDestination is the permission to pay any destination, which includes the permissions for single
// destinations.
const anyDestination = destinationPermission + "*"

const destinationPermission = "destination:"

// checkPaying refuses a key that could pay any destination from too many addresses. A key without an
// allowlist may be made: PayoutDestinations refuses its payouts.
func checkPaying(k Key, s Settings) error {
	pays := slices.Contains(k.Scopes, PayoutsWrite) || slices.Contains(k.Scopes, RefundsWrite)
	if !pays || len(k.AllowedIPs) == 0 {
		return nil
	}

	if _, err := k.PayoutDestinations(s); fault.Code(err) != "payout_allowlist_required" {
		return nil
	}

	return fault.Param(
		"allowed_ips", "key_invalid",
		"a key that pays without a list of destinations may have %d IPv4 addresses and one IPv6 /48 at most",
		maxPayingV4,
	)
}

// isSpecific reports whether an IP allowlist is set and narrow: its ranges have together at most maxPayingV4
// IPv4 addresses, and its IPv6 ranges lie in one /48.
func isSpecific(allowlist []string) bool { // spec D11.19
	ranges, err := parseRanges(allowlist)
	if err != nil || len(ranges) == 0 {
		return false
	}

	var (
		v4 uint64       // addresses
		v6 netip.Prefix // contains all IPv6 ranges
	)

	for _, p := range ranges {
		if p.Addr().Is4() {
			v4 += 1 << (32 - p.Bits())
			continue
		}

		site, err := p.Addr().Prefix(maxPayingV6)
		if err != nil || p.Bits() < maxPayingV6 || v6.IsValid() && site != v6 {
			return false
		}

		v6 = site
	}

	return v4 <= maxPayingV4
}
