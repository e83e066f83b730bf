package account

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

const (
	maxName = 80        // characters of an account's or key's name
	maxURL  = 2048      // bytes of a URL
	maxBPS  = 500       // ten-thousandths: 5 %
	maxRate = 1_000_000 // requests a second, or payouts an hour
)

// maxSweep is the largest SweepMinUSD, in USD.
var maxSweep = decimal.New(1, 12)

// checkSettings checks settings that replace others (zero ones for a new account), and returns them in the
// stored form. Assets and destinations of the others may stay, even if their networks are no longer served.
//
// Errors: fault.Invalid; it names the field.
func (s *Service) checkSettings(v, others Settings) (Settings, error) { // spec D9.11
	if err := checkFields(v); err != nil {
		return Settings{}, err
	}

	var err error
	if v.Assets, err = s.canonicalAssets(v.Assets, others.Assets); err != nil {
		return Settings{}, err
	}

	v.AllowedIPs, v.Destinations, err = s.canonicalAllowlists(
		v.AllowedIPs, v.Destinations, others.Destinations, true, false,
	)

	return v, err
}

// checkFields checks the settings that need no registry.
func checkFields(v Settings) error {
	if err := checkName("name", v.Name); err != nil {
		return err
	}

	for _, u := range []struct{ param, value string }{
		{"website_url", v.WebsiteURL},
		{"success_url", v.SuccessURL},
		{"cancel_url", v.CancelURL},
	} {
		if err := checkURL(u.param, u.value); err != nil {
			return err
		}
	}

	fee := 0
	if v.FeeBPS != nil {
		fee = *v.FeeBPS
	}

	for _, n := range []struct {
		param      string
		value, max int
	}{
		{"tolerance_bps", v.ToleranceBPS, maxBPS},
		{"fee_bps", fee, maxBPS},
		{"payouts_per_hour", v.PayoutsPerHour, maxRate},
		{"requests_per_second", v.RequestsPerSecond, maxRate},
		{"request_burst", v.RequestBurst, maxRate},
	} {
		if n.value < 0 || n.value > n.max {
			return fault.Param(
				n.param, "settings_invalid", "%s is %d: it must be 0 to %d", n.param, n.value,
				n.max,
			)
		}
	}

	if !validSweepMin(v.SweepMinUSD) {
		return fault.Param(
			"sweep_min_usd", "settings_invalid",
			"sweep_min_usd must be 0 to %s with at most 8 places",
			maxSweep,
		)
	}

	if v.ApproveAboveUSD != nil && !validSweepMin(*v.ApproveAboveUSD) {
		return fault.Param(
			"approve_above_usd", "settings_invalid",
			"approve_above_usd must be 0 to %s with at most 8 places",
			maxSweep,
		)
	}

	return nil
}

// validSweepMin reports whether a value in USD is 0 to maxSweep with at most 8 places. It checks
// the exponent first: comparing or truncating a huge one costs much memory.
func validSweepMin(usd decimal.Decimal) bool {
	if usd.IsNegative() || usd.Exponent() < -20 || usd.Exponent() > 20 {
		return false
	}

	return !usd.GreaterThan(maxSweep) && usd.Equal(usd.Truncate(8))
}

// canonicalAssets returns the ids of assets that are given by id or symbol. Each must be enabled here, or be
// one of the stored ids; each is listed once.
func (s *Service) canonicalAssets(given, stored []string) ([]string, error) {
	if given == nil {
		return nil, nil
	}

	// A store does not distinguish an empty list from nil, and nil means all.
	if len(given) == 0 {
		return nil, fault.Param(
			"assets", "settings_invalid",
			"assets is empty: name at least one asset, or leave the list out to enable all",
		)
	}

	// The assets that each name stands for.
	named := map[string][]string{}
	for _, id := range stored {
		named[id] = []string{id}
	}

	for _, a := range append(s.registry.Assets(true), s.registry.Assets(false)...) {
		named[a.ID] = []string{a.ID}
		named[a.Symbol] = append(named[a.Symbol], a.ID)
	}

	var ids []string

	for _, name := range given {
		meant, known := named[name]
		if !known || slices.ContainsFunc(meant, func(id string) bool { return slices.Contains(ids, id) }) {
			return nil, fault.Param(
				"assets", "asset_unknown",
				"no asset with the id or symbol %q is enabled here (or it is twice in the list)",
				shortened(name),
			)
		}

		ids = append(ids, meant...)
	}

	return ids, nil
}

// checkName checks that a name can be shown on one line.
func checkName(param, s string) error {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxName {
		return fault.Param(param, "settings_invalid", "%s must be at most %d characters", param, maxName)
	}

	if wire.HasBidiControl(s) {
		return fault.Param(
			param, "settings_invalid", "%s must have no characters that turn the direction of others", param,
		)
	}

	for _, r := range s {
		if unicode.IsControl(r) {
			return fault.Param(param, "settings_invalid", "%s holds a control character", param)
		}
	}

	return nil
}

// checkURL accepts "" and absolute https URLs. Settings serve live invoices too, so http is not allowed.
func checkURL(param, s string) error {
	if s == "" {
		return nil
	}

	u, err := url.Parse(s)
	if err != nil || len(s) > maxURL || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return fault.Param(
			param, "settings_invalid",
			"%s must be an https URL of at most %d bytes, without user and password",
			param, maxURL,
		)
	}

	return nil
}

// canonicalDestinations returns each destination in the form that payouts compare. A destination without a
// network becomes one for each network of the modes that can parse the address. A stored destination is in
// this form already.
func (s *Service) canonicalDestinations(
	destinations, stored []chain.Destination,
	livemodes ...bool,
) ([]chain.Destination, error) {
	var out []chain.Destination

	for _, given := range destinations {
		found := slices.Contains(stored, given)
		if found && !slices.Contains(out, given) {
			out = append(out, given)
		}

		for _, d := range s.registry.Drivers() {
			n := d.Network()
			if !slices.Contains(livemodes, n.Livemode) || given.Network != "" && given.Network != n.Slug {
				continue
			}

			a, err := d.ParseAddress(string(given.Address))
			if err != nil {
				continue
			}

			found = true

			if c := (chain.Destination{Network: n.Slug, Address: a}); !slices.Contains(out, c) {
				out = append(out, c)
			}
		}

		if !found {
			return nil, fault.Param(
				"destinations", "destination_invalid",
				"%q is an address of no network that is enabled for this mode, or not of the one named",
				shortened(string(given.Address)),
			)
		}
	}

	return out, nil
}

// shortened returns a caller's text for a message, cut to 64 bytes.
func shortened(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}

	return s
}
