package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
)

// TestSoakTronReleasesShowWhatTheyCost releases 100 USDT deposits, 20 without SOAKTIME. The API says to the
// sun what they took from the master wallet: platform fees, network fees, and what is left at the deposit
// addresses, at most 2 % of it.
func TestSoakTronReleasesShowWhatTheyCost(t *testing.T) {
	releases := 20
	if os.Getenv("SOAKTIME") != "" {
		releases = 100
	}

	s := startTron(t)

	// The master wallet holds tokens already: the first ones would cost more energy.
	s.pay(s.master.Address, "TRX", chain.Units(10_000_000_000))
	s.pay(s.master.Address, "USDT", chain.Units(1))
	s.mine(6)

	before := s.coins(s.master.Address)

	orders := make([]invoiceView, releases)
	for i := range orders {
		orders[i] = s.order("40", "USDT", s.slug)
	}

	for _, inv := range orders {
		s.pay(inv.Options[0].Address, "USDT", amount(t, inv.Options[0].AmountDue))
	}

	var fees, network, shown, left chain.Amount

	for _, inv := range orders {
		set := s.settled(inv.ID, 1, "released")[0].Settlement
		fees, network = fees.Add(amount(t, set.FeePaid)), network.Add(amount(t, set.NetworkFees))
		residue := s.residueOf(set.ID)
		shown = shown.Add(residue)

		at := s.coins(inv.Options[0].Address)
		left = left.Add(at)

		if residue != at {
			t.Errorf("settlement %s shows %s sun left, the address holds %s", set.ID, residue, at)
		}
	}

	spent := before.Sub(s.coins(s.master.Address))
	t.Logf(
		"%d releases: spent %s sun, fees %s, network fees %s, left %s",
		releases,
		spent,
		fees,
		network,
		left,
	)

	if spent != fees.Add(network).Add(shown) {
		t.Errorf(
			"the master wallet spent %s sun; fees %s + network fees %s + left %s",
			spent,
			fees,
			network,
			shown,
		)
	}

	if spent.Sub(fees).Less(left.Mul(50)) {
		t.Errorf("%s of %s sun, more than 2 %%, are left at the deposit addresses", left, spent.Sub(fees))
	}
}

// TestTronSettlementShowsWhatItLeft makes energy cheaper between a top-up and its sweep: what the sweep does not
// burn stays at the deposit address, and the settlement says so.
func TestTronSettlementShowsWhatItLeft(t *testing.T) {
	s := startTron(t)
	s.pay(s.master.Address, "TRX", chain.Units(10_000_000_000))
	s.mine(6)
	s.control("energyfactor", map[string]any{"value": 2})

	before := s.coins(s.master.Address)
	inv := s.order("400", "USDT", s.slug)
	to := inv.Options[0].Address
	s.pay(to, "USDT", amount(t, inv.Options[0].AmountDue))

	s.until("the top-up is signed", func() (bool, string) {
		got := s.payments(inv.ID)
		return len(got) == 1 && got[0].Settlement != nil && got[0].Settlement.TopUpTx != "", fmt.Sprint(got)
	})
	s.control("energyfactor", map[string]any{"value": 1})

	set := s.settled(inv.ID, 1, "released")[0].Settlement
	left, residue := s.coins(to), s.residueOf(set.ID)
	spent := before.Sub(s.coins(s.master.Address))

	if left.IsZero() || residue != left {
		t.Errorf("the settlement shows %s sun left, the address holds %s", residue, left)
	}

	if want := amount(t, set.FeePaid).Add(amount(t, set.NetworkFees)).Add(residue); spent != want {
		t.Errorf("the master wallet spent %s sun, the settlement shows %s", spent, want)
	}
}

// residueOf returns what the API says that a settlement left at its deposit address, in sun.
func (s *tronStage) residueOf(settlementID string) chain.Amount {
	s.t.Helper()

	var raw json.RawMessage
	s.call("GET", "/v1/settlements/"+settlementID, nil, &raw)

	var shown struct {
		ResidueIn  string `json:"residue_in"`
		ResidueOut string `json:"residue_out"`
	}
	if err := json.Unmarshal(raw, &shown); err != nil {
		s.t.Fatal(err)
	}

	if shown.ResidueIn != "" {
		s.t.Errorf("a new address already held %s sun", shown.ResidueIn)
	}

	if shown.ResidueOut == "" {
		return chain.Amount{}
	}

	return amount(s.t, shown.ResidueOut)
}
