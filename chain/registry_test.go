package chain_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// described is a driver that only describes its network.
type described struct{ network chain.Network }

func (d described) Network() chain.Network { return d.network }

func (described) Head(context.Context) (chain.Head, error) { return chain.Head{}, fault.Unavailable }

func (described) RefAt(context.Context, uint64) (chain.Ref, error) {
	return chain.Ref{}, fault.Unavailable
}

func (described) ParseAddress(s string) (chain.Address, error) { return chain.Address(s), nil }

var (
	coin = chain.Asset{Symbol: "ETH", Kind: chain.Native, Decimals: 18}
	usdt = chain.Asset{
		Symbol:   "USDT",
		Kind:     chain.Token,
		Contract: "0xdAC17F958D2ee523a2206206994597C13D831ec7",
		Decimals: 6,
	}
)

func network(slug, caip2 string, livemode bool, assets ...chain.Asset) chain.Network {
	return chain.Network{
		Slug:          slug,
		Family:        chain.EVM,
		CAIP2:         caip2,
		Rule:          chain.RuleSafe,
		Confirmations: 12,
		Livemode:      livemode,
	}.With(
		assets...)
}

// tiers sets tiers of pairs of a sum and confirmations.
func tiers(pairs ...int64) func(*chain.Network) {
	return func(n *chain.Network) {
		for pair := range slices.Chunk(pairs, 2) {
			n.Tiers = append(n.Tiers, chain.Tier{
				FromUSD:       decimal.NewFromInt(pair[0]),
				Confirmations: uint64(pair[1]),
			})
		}
	}
}

func TestRegistryRefusals(t *testing.T) {
	good := network("ethereum", "eip155:1", true, coin, usdt)

	with := func(change func(*chain.Network)) chain.Network {
		n := good
		n.Assets = slices.Clone(n.Assets)
		change(&n)

		return n
	}
	for name, networks := range map[string][]chain.Network{
		"no slug":                {with(func(n *chain.Network) { n.Slug = "" })},
		"slug of 1":              {with(func(n *chain.Network) { n.Slug = "e" })},
		"slug of 33":             {with(func(n *chain.Network) { n.Slug = strings.Repeat("e", 33) })},
		"no CAIP-2 name":         {with(func(n *chain.Network) { n.CAIP2 = "" })},
		"slug with a comma":      {with(func(n *chain.Network) { n.Slug = "base,ethereum" })},
		"slug with a space":      {with(func(n *chain.Network) { n.Slug = "my chain" })},
		"slug with a slash":      {with(func(n *chain.Network) { n.Slug = "my/chain" })},
		"slug in upper case":     {with(func(n *chain.Network) { n.Slug = "Ethereum" })},
		"slug of hyphens":        {with(func(n *chain.Network) { n.Slug = "--" })},
		"no family":              {with(func(n *chain.Network) { n.Family = "" })},
		"no rule":                {with(func(n *chain.Network) { n.Rule = "" })},
		"unknown rule":           {with(func(n *chain.Network) { n.Rule = "final" })},
		"negative block time":    {with(func(n *chain.Network) { n.BlockTime = -1 })},
		"negative estimate":      {with(func(n *chain.Network) { n.EstimatedConfirmation = -1 })},
		"tiers descend":          {with(tiers(1000, 20, 999, 30))},
		"tier twice":             {with(tiers(1000, 20, 1000, 30))},
		"tier from 0":            {with(tiers(0, 20))},
		"tier of fewer blocks":   {with(tiers(1000, 11))},
		"fewer than before":      {with(tiers(1000, 20, 2000, 19))},
		"explorer is a script":   {with(func(n *chain.Network) { n.ExplorerTxURL = "javascript:alert(1)//{txHash}" })},
		"explorer is a path":     {with(func(n *chain.Network) { n.ExplorerAddressURL = "/address/{address}" })},
		"explorer of no hash":    {with(func(n *chain.Network) { n.ExplorerTxURL = "https://example.com/tx" })},
		"explorer of no address": {with(func(n *chain.Network) { n.ExplorerAddressURL = "https://example.com" })},
		"faucet is a script":     {with(func(n *chain.Network) { n.FaucetURL = "javascript:alert(1)" })},
		"two native assets":      {with(func(n *chain.Network) { n.Assets[1].Kind = chain.Native })},
		"dust above the least":   {with(func(n *chain.Network) { n.Assets[1].Dust = chain.Units(1) })},
		"no confirmations":       {with(func(n *chain.Network) { n.Confirmations = 0 })},
		"no assets":              {with(func(n *chain.Network) { n.Assets = nil })},
		"no native asset":        {with(func(n *chain.Network) { n.Assets = n.Assets[1:] })},
		"asset without symbol":   {with(func(n *chain.Network) { n.Assets[1].Symbol = "" })},
		"symbol of 17":           {with(func(n *chain.Network) { n.Assets[1].Symbol = strings.Repeat("U", 17) })},
		"symbol twice":           {with(func(n *chain.Network) { n.Assets[1].Symbol = "ETH" })},
		"asset without id":       {with(func(n *chain.Network) { n.Assets[1].ID = "" })},
		"id twice":               {with(func(n *chain.Network) { n.Assets[1].ID = n.Assets[0].ID })},
		"78 decimals":            {with(func(n *chain.Network) { n.Assets[1].Decimals = 78 })},
		"slug twice":             {good, network("ethereum", "eip155:2", true, coin)},
		"CAIP-2 name twice":      {good, network("ether", "eip155:1", true)},
		"asset id of another":    {good, with(func(n *chain.Network) { n.Slug, n.CAIP2 = "other", "eip155:3" })},
		"asset id is network id": {with(func(n *chain.Network) { n.Assets[1].ID = n.ID() })},
	} {
		var drivers []chain.Driver
		for _, n := range networks {
			drivers = append(drivers, described{n})
		}

		r, err := chain.NewRegistry(drivers...)
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "network_invalid" || r != nil {
			t.Errorf("%s: error %v, want fault.Invalid with network_invalid", name, err)
		}
	}

	widest := with(func(n *chain.Network) {
		n.Slug, n.Confirmations = strings.Repeat("e", 32), 1
		n.Assets[1].Symbol, n.Assets[1].Decimals = strings.Repeat("U", 16), 77
		n.Assets[1].Dust, n.Assets[1].MinAmount = chain.Units(1), chain.Units(1)
		n.ExplorerTxURL, n.ExplorerAddressURL = "http://example.com/#{txHash}", "https://example.com/?a={address}"

		tiers(1, 1, 2, 1, 3, 4)(n)
	})
	if _, err := chain.NewRegistry(described{widest}); err != nil {
		t.Errorf("a network at the limits: %v", err)
	}
}

func TestRegistryAnswers(t *testing.T) {
	r, err := chain.NewRegistry(
		described{network("sepolia", "eip155:11155111", false, coin)},
		described{network("ethereum", "eip155:1", true, coin, usdt)},
		described{network("base", "eip155:8453", true, coin)},
	)
	if err != nil {
		t.Fatal(err)
	}

	slugs := func(networks []chain.Network) (out []string) {
		for _, n := range networks {
			out = append(out, n.Slug)
		}

		return out
	}
	if got := slugs(r.Networks(true)); !slices.Equal(got, []string{"base", "ethereum"}) {
		t.Errorf("live networks %v", got)
	}

	if got := slugs(r.Networks(false)); !slices.Equal(got, []string{"sepolia"}) {
		t.Errorf("test networks %v", got)
	}

	var all []chain.Network
	for _, d := range r.Drivers() {
		all = append(all, d.Network())
	}

	if got := slugs(all); !slices.Equal(got, []string{"base", "ethereum", "sepolia"}) {
		t.Errorf("drivers %v", got)
	}

	if d, err := r.Driver("base"); err != nil || d.Network().CAIP2 != "eip155:8453" {
		t.Errorf("driver of base: %v, error %v", d, err)
	}

	if _, err := r.Driver("solana"); !errors.Is(err, fault.NotFound) || fault.Code(err) != "network_unknown" {
		t.Errorf("driver of a network that is not enabled: error %v", err)
	}

	if _, ok := r.Network("solana"); ok {
		t.Error("a network that is not enabled is found")
	}

	if a, ok := chaindata.Asset(r, "ethereum", "USDT"); !ok || a.Contract != usdt.Contract {
		t.Errorf("USDT on ethereum: %+v, %v", a, ok)
	}

	for _, missing := range [][2]string{{"base", "USDT"}, {"ethereum", "usdt"}, {"solana", "USDT"}} {
		if a, ok := chaindata.Asset(r, missing[0], missing[1]); ok {
			t.Errorf("%s on %s: %+v", missing[1], missing[0], a)
		}
	}

	assets := r.Assets(true)
	if len(assets) != 3 ||
		!slices.IsSortedFunc(assets, func(a, b chain.Asset) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("live assets %+v: want three, by id", assets)
	}

	for _, a := range assets {
		if !a.Livemode {
			t.Errorf("a test asset among the live ones: %+v", a)
		}
	}

	empty, err := chain.NewRegistry()
	if err != nil || len(empty.Drivers()) != 0 || len(empty.Assets(true)) != 0 {
		t.Errorf("registry without drivers: error %v", err)
	}
}

// Ids computed with another program: they are in merchants' databases and never change.
func TestDerivedIDs(t *testing.T) {
	if got, want := network("ethereum", "eip155:1", true).ID(), "1a290b3d78267165e501197c"; got != want {
		t.Errorf("network id %s, want %s", got, want)
	}

	for _, c := range []struct {
		caip2    string
		contract chain.Address
		want     string
	}{
		{"eip155:1", "", "985338a33e090084acbb577c"},
		{"eip155:1", "native", "985338a33e090084acbb577c"},
		{"eip155:1", usdt.Contract, "1e9935c7f118a9513aef7511"},
		{"bip122:000000000019d6689c085ae165831e93", "", "62749305f76a3bff4aa12d9c"},
	} {
		if got := chain.AssetID(c.caip2, c.contract); got != c.want {
			t.Errorf("id of %q on %s is %s, want %s", c.contract, c.caip2, got, c.want)
		}
	}
}

func TestWithCompletesAssets(t *testing.T) {
	bridged := usdt
	bridged.Symbol, bridged.Contract, bridged.Price = "USDT0", "0x0000000000000000000000000000000000000001", "USDT"
	before := chain.Network{Slug: "ethereum", CAIP2: "eip155:1", Livemode: true, Assets: []chain.Asset{coin}}

	after := before.With(usdt, bridged)
	if len(before.Assets) != 1 || before.Assets[0] != coin {
		t.Fatalf("With changed its receiver: %+v", before.Assets)
	}

	want := []struct{ symbol, id, price string }{
		{"ETH", "985338a33e090084acbb577c", "ETH"},
		{"USDT", "1e9935c7f118a9513aef7511", "USDT"},
		{"USDT0", chain.AssetID("eip155:1", bridged.Contract), "USDT"},
	}
	for i, w := range want {
		a := after.Assets[i]
		if a.Symbol != w.symbol || a.ID != w.id || a.Price != w.price || a.Network != "ethereum" ||
			!a.Livemode {
			t.Errorf("asset %d is %+v, want %+v", i, a, w)
		}

		if byID, ok := after.AssetByID(w.id); !ok || byID != a {
			t.Errorf("by id %s: %+v, %v", w.id, byID, ok)
		}

		if bySymbol, ok := after.Asset(w.symbol); !ok || bySymbol != a {
			t.Errorf("by symbol %s: %+v, %v", w.symbol, bySymbol, ok)
		}
	}

	if native, ok := after.Native(); !ok || native.Symbol != "ETH" {
		t.Errorf("native asset %+v, %v", native, ok)
	}

	if _, ok := after.AssetByID("000000000000000000000000"); ok {
		t.Error("an asset is found under an id of nothing")
	}

	if _, ok := (chain.Network{}).Native(); ok {
		t.Error("an empty network has a native asset")
	}
}
