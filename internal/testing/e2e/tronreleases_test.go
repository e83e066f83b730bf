package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// TestSoakTronReleasesShowWhatTheyCost releases 100 USDT deposits, 20 without SOAKTIME. The API says to the
// sun what they took from the master wallet: platform fees, network fees, and what is left at the deposit
// addresses, at most 2 % of it. So it does where they use energy of the wallet's stake, or energy that is bought.
func TestSoakTronReleasesShowWhatTheyCost(t *testing.T) {
	t.Parallel()

	releases := 20
	if os.Getenv("SOAKTIME") != "" {
		releases = 100
	}

	t.Run("topped up", func(t *testing.T) { testReleaseCosts(t, startTron(t), releases) })

	t.Run("delegated", func(t *testing.T) {
		s := startTron(t, func(c *tron.Config) { c.DelegateEnergy = true })
		s.pay(s.master.Address, "TRX", chain.Units(1))
		s.mine(6)
		s.control("freeze", map[string]any{
			"address": testenv.TronHex(string(s.master.Address)),
			"value":   10_000_000_000_000,
		})

		testReleaseCosts(t, s, releases)

		if made := len(s.delegations()); made != releases {
			t.Errorf("%d releases took %d delegations", releases, made)
		}
	})

	t.Run("bought", func(t *testing.T) {
		seller := &energySeller{asked: map[chain.Address]uint64{}, sold: map[chain.Address]chain.Amount{}}
		s := startTron(t, func(c *tron.Config) { c.EnergyProvider = seller })
		seller.stage = s
		s.pay(seller.Seller(), "TRX", chain.Units(1))
		s.mine(6)

		testReleaseCosts(t, s, releases)

		// What it earned is a part of the network fees above.
		if earned := s.coins(seller.Seller()); len(seller.sold) != releases || earned != seller.earned() {
			t.Errorf("%d sales for %d releases, it earned %s sun", len(seller.sold), releases, earned)
		}
	})
}

// energySeller rents energy out, for a tenth of what it costs to burn, to whoever paid for it and looks for it.
type energySeller struct {
	stage *tronStage
	mu    sync.Mutex
	asked map[chain.Address]uint64
	sold  map[chain.Address]chain.Amount // for how much
}

func (*energySeller) Seller() chain.Address {
	return tronAddress("0x00000000000000000000000000000000000e4e49")
}

func (s *energySeller) Price(_ context.Context, to chain.Address, energy uint64) (chain.Amount, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.asked[to] = energy

	return chain.Units(10).Mul(energy), nil
}

func (s *energySeller) Pending(_ context.Context, to chain.Address) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if _, delivered := s.sold[to]; !delivered {
		price := chain.Units(10).Mul(s.asked[to])
		if s.stage.coins(s.Seller()).Less(s.earned().Add(price)) {
			return false, nil // nobody paid
		}

		s.sold[to] = price
	}

	_, err := s.stage.node.Control(
		s.stage.t.Context(),
		"stake",
		map[string]any{"address": testenv.TronHex(string(to)), "energy": s.asked[to]},
	)

	return true, err
}

// earned returns what the seller has, with the one sun that activated it.
func (s *energySeller) earned() chain.Amount {
	sum := chain.Units(1)
	for _, price := range s.sold {
		sum = sum.Add(price)
	}

	return sum
}

// testReleaseCosts releases USDT deposits and compares what the API shows with what the master wallet spent.
func testReleaseCosts(t *testing.T, s *tronStage, releases int) {
	t.Helper()

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

	s.allReleased(orders)

	// The cost of an undelegation is recorded when it is final.
	s.until("the stake is back", func() (bool, string) {
		all := s.delegations()
		return !slices.Contains(slices.Collect(maps.Values(all)), false), fmt.Sprint(all)
	})

	var fees, network, left chain.Amount

	for _, inv := range orders {
		set := s.settled(inv.ID, 1, "released")[0].Settlement
		fees, network = fees.Add(amount(t, set.FeePaid)), network.Add(amount(t, set.NetworkFees))
		residue, at := s.residueOf(set.ID), s.coins(inv.Options[0].Address)
		left = left.Add(residue)

		if residue != at {
			t.Errorf("settlement %s shows %s sun left, the address holds %s", set.ID, residue, at)
		}
	}

	spent := before.Sub(s.coins(s.master.Address))
	if spent != fees.Add(network).Add(left) {
		t.Errorf(
			"the master wallet spent %s sun; fees %s + network fees %s + left %s",
			spent, fees, network, left,
		)
	}

	t.Logf(
		"%d releases: spent %s sun, fees %s, network fees %s, left %s",
		releases,
		spent,
		fees,
		network,
		left,
	)

	if spent.Sub(fees).Less(left.Mul(50)) {
		t.Errorf("%s of %s sun, more than 2 %%, are left at the deposit addresses", left, spent.Sub(fees))
	}

	report, err := s.engine.Audit(t.Context())
	if err != nil || !report.Clean() {
		t.Errorf("the audit finds %+v, %v", report.Differences(), err)
	}
}

// allReleased waits until the payments of all orders are released, one order after the other.
func (s *tronStage) allReleased(orders []invoiceView) {
	s.t.Helper()

	for _, inv := range orders {
		s.until("the release of "+inv.ID, func() (bool, string) {
			payments, state := s.payments(inv.ID), ""
			done := len(payments) > 0

			for _, p := range payments {
				done = done && p.Settlement != nil && p.Settlement.Status == "released"
				state += fmt.Sprintf("%s %+v\n", p.Status, p.Settlement)
			}

			return done, state
		})
	}
}

// delegations returns the confirmed delegations by their ids, with whether each was taken back.
func (s *tronStage) delegations() map[string]bool {
	s.t.Helper()

	rows, err := s.store.Transactions(s.t.Context(), s.slug, "", 1000)
	if err != nil {
		s.t.Fatal(err)
	}

	back := map[string]bool{}

	for _, t := range rows {
		switch {
		case t.State != wallet.Confirmed:
		case t.Kind == wallet.Delegate && chaindata.EnergyPrice(t.Order).IsZero():
			if _, known := back[t.ID]; !known {
				back[t.ID] = false
			}
		case t.Kind == wallet.Undelegate:
			back[t.ObjectID] = true
		}
	}

	return back
}

// TestTronSettlementShowsWhatItLeft makes energy cheaper between a top-up and its sweep: what the sweep does not
// burn stays at the deposit address, and the settlement says so.
func TestTronSettlementShowsWhatItLeft(t *testing.T) {
	t.Parallel()

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

// TestRestOfATronTopUpIsUsedByTheNextRelease pays an address again at which a release left coin: the next release
// burns of it before the master wallet tops anything up, and its settlement shows that.
func TestRestOfATronTopUpIsUsedByTheNextRelease(t *testing.T) {
	t.Parallel()

	s := startTron(t)
	s.pay(s.master.Address, "TRX", chain.Units(10_000_000_000))
	s.mine(6)
	s.control("energyfactor", map[string]any{"value": 2})

	before := s.coins(s.master.Address)
	inv := s.order("400", "USDT", s.slug)
	to, due := inv.Options[0].Address, amount(t, inv.Options[0].AmountDue)
	s.pay(to, "USDT", due)

	s.until("the top-up is signed", func() (bool, string) {
		got := s.payments(inv.ID)
		return len(got) == 1 && got[0].Settlement != nil && got[0].Settlement.TopUpTx != "", fmt.Sprint(got)
	})
	s.control("energyfactor", map[string]any{"value": 1})

	first := s.settled(inv.ID, 1, "released")[0].Settlement
	left := s.coins(to)
	s.pay(to, "USDT", due)

	var want, rest chain.Amount // what settlements show of the master wallet's coin, and what the second left

	for _, p := range s.settled(inv.ID, 2, "released") {
		set := p.Settlement
		in, out := s.residuesOf(set.ID)
		want = want.Add(amount(t, set.FeePaid)).Add(amount(t, set.NetworkFees)).Add(out).Sub(in)

		if set.ID == first.ID {
			continue
		}

		rest = out
		if left.IsZero() || in != left || !out.Less(in) || set.TopUpTx != "" {
			t.Errorf(
				"%s sun were left; next %s are used, %s left, and the top-up is %q",
				left,
				in,
				out,
				set.TopUpTx,
			)
		}
	}

	spent := before.Sub(s.coins(s.master.Address))
	if at := s.coins(to); spent != want || at != rest {
		t.Errorf("spent are %s sun, shown %s; at the address are %s, shown %s", spent, want, at, rest)
	}
}

// residueOf returns what the API says that the settlement of a new deposit address left there, in sun.
func (s *tronStage) residueOf(settlementID string) chain.Amount {
	s.t.Helper()

	in, out := s.residuesOf(settlementID)
	if !in.IsZero() {
		s.t.Errorf("a new address already held %s sun", in)
	}

	return out
}

// residuesOf returns what the API says that a settlement used of its deposit address, and what it left there, in sun.
func (s *tronStage) residuesOf(settlementID string) (in, out chain.Amount) {
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
		in = amount(s.t, shown.ResidueIn)
	}

	if shown.ResidueOut != "" {
		out = amount(s.t, shown.ResidueOut)
	}

	return in, out
}
