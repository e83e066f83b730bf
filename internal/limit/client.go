// Package limit determines a request's client and limits its requests: for the API and the checkout page
// alike.
package limit

// This file holds the client's address.

import (
	"net/http"
	"net/netip"
	"strings"
)

// ForwardedFor is the header in which proxies usually send the client's address.
const ForwardedFor = "X-Forwarded-For"

// ClientAddr returns the address from which a request came. This is the peer's, unless the peer is a trusted
// proxy; then it is the right-most hop of the forwarding header that is not a trusted proxy. The header holds
// addresses, with or without a port, the latest hop last. IPv4 addresses are never in their IPv6 form, and no
// address has a zone. The result is the zero value if the address is unknown: the peer has none, or a trusted
// proxy sends something that is not an address.
func ClientAddr(r *http.Request, header string, trusted []netip.Prefix) netip.Addr { // spec D9.7
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}

	client := canonicalAddr(peer.Addr())
	if !contains(trusted, client) {
		return client
	}

	hops := strings.Split(strings.Join(r.Header.Values(header), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := strings.TrimSpace(hops[i])
		if hop == "" && len(hops) == 1 {
			return client // the proxy itself is the client
		}

		addr, err := parseHop(hop)
		if err != nil {
			return netip.Addr{}
		}

		client = addr
		if !contains(trusted, client) {
			return client
		}
	}

	return client
}

// ClientKey returns the key under which a client is limited: its IPv4 address, or the /64 of its IPv6
// address, which one subscriber gets (RFC 6177). Clients without a known address share a key.
func ClientKey(addr netip.Addr) string {
	switch {
	case !addr.IsValid():
		return "unknown"
	case addr.Is6():
		return netip.PrefixFrom(addr, 64).Masked().String()
	}

	return addr.String()
}

// parseHop reads an address, or an address with a port.
func parseHop(s string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return canonicalAddr(a), nil
	}

	a, err := netip.ParseAddrPort(s)

	return canonicalAddr(a.Addr()), err
}

func canonicalAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func contains(ranges []netip.Prefix, a netip.Addr) bool {
	for _, p := range ranges {
		if p.Contains(a) {
			return true
		}
	}

	return false
}
