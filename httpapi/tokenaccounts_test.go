package httpapi_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// accounted is a simulated network with token accounts.
type accounted struct{ *sim.Chain }

func (accounted) TokenAccount(owner chain.Address, asset chain.Asset) (chain.Address, error) {
	return owner + "/" + asset.Contract, nil
}

// bootAccounted starts a process with a simulated network of token accounts that is changed, for the owner of a key.
func bootAccounted(t *testing.T, db payments.Store, key string, change func(n *chain.Network)) *shop {
	t.Helper()

	network := sim.DefaultNetwork()
	change(&network)

	s := bootWith(t, db, nil, time.Now, func(c *payments.Config) {
		c.Drivers = []payments.ChainDriver{accounted{sim.New(sim.Config{Network: network})}}
	})
	s.key = key

	return s
}

// TestTokenAccountsOfOlderDepositAddresses: a deposit address shows the token accounts of the tokens that its network
// has now. One of its symbols may name another contract since, or an asset was enabled or removed.
func TestTokenAccountsOfOlderDepositAddresses(t *testing.T) {
	db := memory.New()
	token := sim.DefaultNetwork().Assets[1]

	// start starts a process whose network has tokens with the contracts, by symbol.
	start := func(key string, contracts map[string]chain.Address) *shop {
		return bootAccounted(t, db, key, func(n *chain.Network) {
			n.Assets = n.Assets[:1]

			for symbol, contract := range contracts {
				asset := token
				asset.Symbol, asset.Contract = symbol, contract
				n.Assets = append(n.Assets, asset)
			}

			slices.SortFunc(n.Assets[1:], func(a, b chain.Asset) int {
				return strings.Compare(a.Symbol, b.Symbol)
			})
		})
	}

	first, other := token.Contract, sim.New(sim.Config{}).NewAddress()

	s := start("", map[string]chain.Address{"OLDX": other, "USDX": first})
	s.enter(t)
	created := s.post(t, "/v1/deposit_addresses", `{"network":"simnet"}`)
	path, at := "/v1/deposit_addresses/"+created["id"].(string), chain.Address(created["address"].(string))

	s = start(s.key, map[string]chain.Address{"NEWX": first, "USDX": other})
	want := []any{
		map[string]any{"asset": "NEWX", "token_account": string(at + "/" + first)},
		map[string]any{"asset": "USDX", "token_account": string(at + "/" + other)},
	}

	listed := s.get(t, "/v1/deposit_addresses")["data"].([]any)
	for name, shown := range map[string]any{
		"by its id":   s.get(t, path),
		"in a list":   listed[0],
		"once edited": s.ok(t, s.do(t, request{method: "PATCH", path: path, body: `{"name":"One"}`})),
	} {
		if got := shown.(map[string]any)["token_accounts"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the token accounts are %v, want %v", name, got, want)
		}
	}
}

// The token account of an asset that is not enabled any more cannot be derived: who writes the database could name any.
func TestTokenAccountOfARemovedAssetIsNotShown(t *testing.T) {
	db := memory.New()
	symbol := sim.DefaultNetwork().Assets[1].Symbol
	s := bootAccounted(t, db, "", func(*chain.Network) {})
	s.enter(t)

	body := `{"options":[{"asset":"` + symbol + `","network":"simnet","amount":"1000000"}]}`
	id := s.post(t, "/v1/invoices", body)["id"].(string)
	account := func(s *shop) any {
		return s.get(t, "/v1/invoices/"+id)["options"].([]any)[0].(map[string]any)["token_account"]
	}

	if account(s) == nil {
		t.Error("the token account of an enabled asset is not shown")
	}

	s = bootAccounted(t, db, s.key, func(n *chain.Network) {
		n.Assets[1].Contract = s.network.NewAddress()
	})
	if shown := account(s); shown != nil {
		t.Errorf("the token account %v of a removed asset is shown", shown)
	}
}
