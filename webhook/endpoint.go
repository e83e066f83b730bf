package webhook

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/ssrf"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// This file holds the rules for the fields of an endpoint.

const (
	// maxEndpoints is how many endpoints an account may have in each mode.
	maxEndpoints = 16 // spec D8.4

	maxURL         = 2048 // bytes
	maxDescription = 200  // characters
)

// EventObject returns the endpoint as the object of an event.
func (e Endpoint) EventObject() event.Object {
	return event.Object{Owner: e.Owner, ID: e.ID, Sequence: e.Sequence}
}

// checkEvents returns the event types of a subscription without duplicates.
//
// Errors: fault.Invalid unless they are known types or the single entry "*".
func checkEvents(types []event.Type) ([]event.Type, error) { // spec 2.10.4
	if len(types) == 0 {
		return nil, fault.Param(
			"events", "parameter_invalid",
			`events is empty: list the event types that the endpoint should get, or "*" for all`,
		)
	}

	if slices.Equal(types, []event.Type{"*"}) {
		return []event.Type{"*"}, nil
	}

	known := event.Types()

	out := make([]event.Type, 0, min(len(types), len(known)))
	for _, t := range types {
		switch {
		case t == "*":
			return nil, fault.Param("events", "parameter_invalid", `"*" means all events and stands alone`)
		case !slices.Contains(known, t):
			return nil, fault.Param(
				"events", "parameter_invalid", "%q is not an event type", wire.Cut(string(t), 64),
			)
		case !slices.Contains(out, t):
			out = append(out, t)
		}
	}

	return out, nil
}

// checkDescription checks a description.
//
// Errors: fault.Invalid when it is too long or not UTF-8.
func checkDescription(s string) error {
	if wire.HasBidiControl(s) {
		return fault.Param(
			"description", "parameter_invalid",
			"description must have no characters that turn the direction of others",
		)
	}

	if n := utf8.RuneCountInString(s); n > maxDescription || !utf8.ValidString(s) {
		return fault.Param(
			"description", "parameter_invalid",
			"description has %d characters: at most %d are allowed",
			n, maxDescription,
		)
	}

	return nil
}

// checkURL checks an endpoint's URL: https, or http in test mode, with a host, without user name or
// fragment. A host that is an IP address must pass the guard. A host name is checked when it is
// connected to. A port must be 80, 443 or above 1023.
//
// Errors: fault.Invalid.
func checkURL(s string, livemode bool, guard ssrf.Guard) error { // spec D8.3
	bad := func(format string, args ...any) error {
		return fault.Param("url", "parameter_invalid", format, args...)
	}
	if len(s) > maxURL {
		return bad("url has %d bytes: at most %d are allowed", len(s), maxURL)
	}

	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "" || u.Hostname() == "":
		return bad("url is not an absolute URL: write it like https://example.com/webhooks")
	case u.Scheme == "http" && livemode:
		return bad("url must begin with https://: http:// is for test mode only")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("url must begin with https://")
	case u.User != nil:
		return bad(
			"url must not hold a user name or password: deliveries prove where they come from by their signature",
		)
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return bad("url must not have a fragment (#)")
	}

	addr, err := netip.ParseAddr(u.Hostname())

	if text := u.Port(); text != "" {
		port, portErr := strconv.ParseUint(text, 10, 16)
		if portErr != nil || guard.Port(addr, uint16(port)) != nil {
			return fault.Param(
				"url", "url_not_allowed", "url has the port %s: it must be 80, 443 or above 1023", text,
			)
		}
	}

	if err != nil {
		if numeric(u.Hostname()) {
			return bad("url names an address in an unusual notation: write it in the usual one")
		}

		return nil
	}

	if err := guard.Address(addr); err != nil {
		return fault.Param(
			"url", "url_not_allowed",
			"url leads to %s, and webhooks are not delivered to internal addresses",
			addr,
		)
	}

	return nil
}

// numeric reports whether some resolvers would parse a host as an IPv4 address: its last label is a
// number, such as 2130706433 or 0x7f.1 (https://url.spec.whatwg.org/#ends-in-a-number-checker).
func numeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])

	digits := "0123456789"
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		last, digits = hex, "0123456789abcdef"
		if last == "" {
			return true
		}
	}

	return last != "" && strings.Trim(last, digits) == ""
}
