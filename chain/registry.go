package chain

import (
	"cmp"
	"fmt"
	"slices"

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

// NewRegistry checks the drivers' networks and returns them as a set: slugs, ids and (network, symbol)
// must be unique, a native asset must be there.
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

func checkNetwork(n Network, ids map[string]string) error {
	bad := func(format string, args ...any) error {
		return fault.New(
			fault.Invalid, "network_invalid", "network %q: %s", n.Slug,
			fmt.Sprintf(format, args...),
		)
	}
	if len(n.Slug) < 2 || len(n.Slug) > 32 {
		return bad("the slug must have 2 to 32 characters")
	}

	if n.CAIP2 == "" || n.Confirmations == 0 {
		return bad("CAIP2 and Confirmations must be set")
	}

	if _, ok := n.Native(); !ok {
		return bad("it has no native asset")
	}

	if other, taken := ids[n.ID()]; taken {
		return bad("its CAIP-2 name %s is also that of %s", n.CAIP2, other)
	}

	ids[n.ID()] = n.Slug

	symbols := map[string]bool{}
	for _, a := range n.Assets {
		if a.Symbol == "" || len(a.Symbol) > 16 || symbols[a.Symbol] || a.ID == "" || ids[a.ID] != "" ||
			a.Decimals > 77 {
			return bad(
				"asset %q: the symbol must be unique and have 1 to 16 characters, the id must be set and "+
					"unique, decimals at most 77",
				a.Symbol,
			)
		}

		symbols[a.Symbol], ids[a.ID] = true, n.Slug+"/"+a.Symbol
	}

	return nil
}

// Driver returns the driver of a network, or fault.NotFound.
func (r *Registry) Driver(slug string) (Driver, error) {
	if s, ok := r.bySlug[slug]; ok {
		return s.driver, nil
	}

	return nil, fault.New(fault.NotFound, "network_unknown", "network %q is not enabled here", slug)
}

// Network returns a network by its slug; ok is false when it is not enabled. Its slices are those of every call: they
// are not to be changed.
func (r *Registry) Network(slug string) (n Network, ok bool) {
	s, ok := r.bySlug[slug]

	return s.network, ok
}

// Networks returns the networks of one mode, by slug. Their slices are not to be changed.
func (r *Registry) Networks(livemode bool) []Network {
	var out []Network

	for _, s := range r.slugs {
		if n := r.bySlug[s].network; n.Livemode == livemode {
			out = append(out, n)
		}
	}

	return out
}

// Drivers returns all drivers, by slug.
func (r *Registry) Drivers() []Driver {
	out := make([]Driver, 0, len(r.slugs))
	for _, s := range r.slugs {
		out = append(out, r.bySlug[s].driver)
	}

	return out
}

// Assets returns every asset of one mode, by id.
func (r *Registry) Assets(livemode bool) []Asset {
	var out []Asset
	for _, n := range r.Networks(livemode) {
		out = append(out, n.Assets...)
	}

	slices.SortFunc(out, func(a, b Asset) int { return cmp.Compare(a.ID, b.ID) })

	return out
}

// AssetByID returns an asset and the native coin of its network. What is not enabled is fault.NotFound
// with code network_unknown or asset_unknown.
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
