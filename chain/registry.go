package chain

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
)

// Registry is the set of networks that a process serves. It does not change after NewRegistry.
type Registry struct {
	bySlug map[string]served
	slugs  []string
}

// served is a network with its driver.
type served struct {
	driver  Driver
	network Network
}

// NewRegistry checks the drivers' networks and returns them as a set. Slugs, ids and (network, symbol) must
// be unique, and each network must have exactly one native asset.
//
// Errors: fault.Invalid with code network_invalid; its text names the network and the field to set.
func NewRegistry(drivers ...Driver) (*Registry, error) { // spec D1.3
	r := &Registry{bySlug: make(map[string]served, len(drivers))}
	ids := map[string]string{}

	for _, d := range drivers {
		n := d.Network()
		if _, twice := r.bySlug[n.Slug]; twice {
			return nil, fault.New(
				fault.Invalid, "network_invalid", "two drivers are configured for network %s",
				n.Slug,
			)
		}

		if err := checkNetwork(n, ids); err != nil {
			return nil, err
		}

		r.bySlug[n.Slug] = served{driver: d, network: n}
		r.slugs = append(r.slugs, n.Slug)
	}

	slices.Sort(r.slugs)

	return r, nil
}

// checkNetwork checks a network by itself, and that its ids are not in ids. It adds them to ids.
func checkNetwork(n Network, ids map[string]string) error {
	problem := cmp.Or(n.problem(), n.tierProblem(), n.linkProblem(), n.assetProblem(ids))
	if problem == "" {
		return nil
	}

	return fault.New(fault.Invalid, "network_invalid", "network %q: %s", n.Slug, problem)
}

// slugPattern matches names that need no escaping in a URL, a query parameter and a list with commas.
var slugPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// problem describes what is wrong with a network's own fields and how to set them; "" if nothing is.
func (n Network) problem() string {
	switch {
	case len(n.Slug) < 2 || len(n.Slug) > 32 || !slugPattern.MatchString(n.Slug):
		return "the slug must have 2 to 32 characters: a-z and 0-9, with single hyphens between them"
	case n.Family == "" || n.CAIP2 == "" || n.Confirmations == 0:
		return "Family, CAIP2 and Confirmations must be set"
	case n.Rule != RuleConfirmations && n.Rule != RuleSafe && n.Rule != RuleFinalized:
		return fmt.Sprintf("Rule %q is none: set RuleConfirmations, RuleSafe or RuleFinalized", n.Rule)
	case n.Fallback < 0:
		return "Fallback must not be negative: 0 says that Confirmations alone count where finality cannot be read"
	case n.BlockTime < 0 || n.EstimatedConfirmation < 0:
		return "BlockTime and EstimatedConfirmation must not be negative: 0 says that there is no figure"
	}

	return ""
}

// tierProblem describes what is wrong with the tiers.
func (n Network) tierProblem() string {
	before := Tier{Confirmations: n.Confirmations}
	for _, t := range n.Tiers {
		if t.FromUSD.Cmp(before.FromUSD) <= 0 || t.Confirmations < before.Confirmations {
			return fmt.Sprintf(
				"the tier from %s USD must begin above the one before it, and above 0, and ask for at least as many "+
					"confirmations",
				t.FromUSD,
			)
		}

		before = t
	}

	return ""
}

// linkProblem describes what is wrong with the links that pages show.
func (n Network) linkProblem() string {
	for _, link := range []struct{ field, url, contains string }{
		{"ExplorerTxURL", n.ExplorerTxURL, "{txHash}"},
		{"ExplorerAddressURL", n.ExplorerAddressURL, "{address}"},
		{"FaucetURL", n.FaucetURL, ""},
	} {
		if link.url == "" {
			continue
		}

		u, err := url.Parse(link.url)
		if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") ||
			!strings.Contains(link.url, link.contains) {
			return fmt.Sprintf("%s must be empty or an http or https URL %s", link.field, link.contains)
		}
	}

	return ""
}

// assetProblem describes what is wrong with the assets, or which id is already in ids. It adds the network's
// ids to ids.
func (n Network) assetProblem(ids map[string]string) string {
	if other, taken := ids[n.ID()]; taken {
		return fmt.Sprintf("its CAIP-2 name %s is also that of %s", n.CAIP2, other)
	}

	ids[n.ID()] = n.Slug
	symbols, natives := map[string]bool{}, 0

	for _, a := range n.Assets {
		if a.Symbol == "" || len(a.Symbol) > 16 || symbols[a.Symbol] || a.ID == "" || ids[a.ID] != "" ||
			a.Decimals > 77 {
			return fmt.Sprintf(
				"asset %q: the symbol must be unique and have 1 to 16 characters, the id must be set and "+
					"unique, decimals at most 77",
				a.Symbol,
			)
		}

		if a.MinAmount.Less(a.Dust) {
			return fmt.Sprintf(
				"asset %q: Dust must be at most MinAmount; Network.With lowers it", a.Symbol,
			)
		}

		if a.Kind == Native {
			natives++
		}

		symbols[a.Symbol], ids[a.ID] = true, n.Slug+"/"+a.Symbol
	}

	if natives != 1 {
		return fmt.Sprintf("it has %d native assets: fees are paid in exactly one", natives)
	}

	return ""
}

// Driver returns the driver of a network, or fault.NotFound.
func (r *Registry) Driver(slug string) (Driver, error) {
	if s, ok := r.bySlug[slug]; ok {
		return s.driver, nil
	}

	return nil, fault.New(fault.NotFound, "network_unknown", "network %q is not enabled here", slug)
}

// Network returns a network by its slug; ok is false when it is not enabled. All calls return the same
// slices, so callers must not change them.
func (r *Registry) Network(slug string) (n Network, ok bool) {
	s, ok := r.bySlug[slug]

	return s.network, ok
}

// Networks returns the networks of one mode, ordered by slug. Callers must not change their slices.
func (r *Registry) Networks(livemode bool) []Network {
	var out []Network

	for _, s := range r.slugs {
		if n := r.bySlug[s].network; n.Livemode == livemode {
			out = append(out, n)
		}
	}

	return out
}

// Drivers returns all drivers, ordered by slug.
func (r *Registry) Drivers() []Driver {
	out := make([]Driver, 0, len(r.slugs))
	for _, s := range r.slugs {
		out = append(out, r.bySlug[s].driver)
	}

	return out
}

// Assets returns every asset of one mode, ordered by id.
func (r *Registry) Assets(livemode bool) []Asset {
	var out []Asset
	for _, n := range r.Networks(livemode) {
		out = append(out, n.Assets...)
	}

	slices.SortFunc(out, func(a, b Asset) int { return cmp.Compare(a.ID, b.ID) })

	return out
}

// AssetByID returns an asset and the native coin of its network. If either is not enabled, the error is
// fault.NotFound with code network_unknown or asset_unknown.
func (r *Registry) AssetByID(network, assetID string) (asset, native Asset, err error) {
	n, ok := r.Network(network)
	if !ok {
		return asset, native, fault.New(
			fault.NotFound, "network_unknown", "network %q is not enabled here", network,
		)
	}

	asset, ok1 := n.AssetByID(assetID)

	native, ok2 := n.Native()
	if !ok1 || !ok2 {
		return asset, native, fault.New(
			fault.NotFound, "asset_unknown", "asset %s is not enabled on network %s", assetID, network,
		)
	}

	return asset, native, nil
}
