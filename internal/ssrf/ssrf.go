// Package ssrf keeps requests to merchants' URLs off our own network: it allows only public addresses, and
// checks the address at the time of the connection.
package ssrf

import (
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// neverPublic are addresses in public ranges at which clouds themselves answer, with credentials.
var neverPublic = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's platform address
}

// Guard decides which addresses may be connected to.
type Guard struct {
	rules *ssrf.Guardian
	allow []netip.Prefix
}

// New returns a Guard that allows only public addresses, and the given ranges.
func New(allow []netip.Prefix) Guard {
	var all, v4, v6 []netip.Prefix

	for _, p := range allow {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}

		all = append(all, p)

		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}

	return Guard{
		rules: ssrf.New(
			ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...),
			ssrf.WithAllowedV6Prefixes(v6...), ssrf.WithDeniedV4Prefixes(neverPublic...),
		),
		allow: all,
	}
}

// Port returns an error for a port that must not be connected to. Only 80, 443 and ports above 1023 are
// allowed, so that requests cannot reach mail and name servers. Addresses in a given range may have any port;
// the zero address stands for an address that is not known yet.
func (g Guard) Port(addr netip.Addr, port uint16) error {
	if port == 80 || port == 443 || port > 1023 {
		return nil
	}

	for _, p := range g.allow {
		if !addr.IsValid() || p.Contains(addr.Unmap()) {
			return nil
		}
	}

	return fmt.Errorf("port %d is neither 80 nor 443 nor above 1023", port)
}

// Address returns an error for an address that must not be connected to. An IPv4 address written as an IPv6
// one is checked as IPv4.
func (g Guard) Address(addr netip.Addr) error { return g.rules.SafeAddr(addr.Unmap()) } // spec D8.17

// Control is a net.Dialer.Control: it checks the address of the connection, for any name or notation.
func (g Guard) Control(network, address string, c syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil {
		if err := g.Port(at.Addr(), at.Port()); err != nil {
			return err
		}

		address = netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
	}

	return g.rules.Safe(network, address, c)
}
