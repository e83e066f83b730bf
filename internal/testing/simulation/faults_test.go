package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// scenario shows one row of the pitfalls.
type scenario struct {
	// plan changes the network and the number of processes; its operations are not played.
	plan Plan
	play func(w *harness)
	// ends is set where the play itself ends with what must hold; others come to rest then.
	ends bool
}

func usdx(n uint64) chain.Amount { return chain.Pow10(6).Mul(n) }

func sims(milli uint64) chain.Amount { return chain.Pow10(15).Mul(milli) }

// scenarios are those of faultRows, by row and rule.
var scenarios = map[string]scenario{
	"0 " + ruleReleased: {plan: seed5},
	"0 " + ruleConfirmed: {play: func(w *harness) {
		w.accounts().SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
		w.processes[0].nodes[0].failing = map[sim.Method]int{sim.MethodBalances: 1000}
		w.deposits("USDX", usdx(100))
	}},
	"0 " + ruleWaiting: {play: func(w *harness) {
		inv := w.owes("USDX", usdx(100))
		w.processes[0].nodes[0].failing = map[sim.Method]int{sim.MethodBalances: 1_000_000}
		w.networks[0].pay(inv.Address, "USDX", usdx(100))
		w.passes(9 * time.Minute)
	}},
	"35 " + ruleConfirmed: {play: func(w *harness) {
		inv := w.owes("USDX", usdx(100))
		hash := w.paysOther(
			inv,
			usdx(100),
			func(uint64) (chain.Address, chain.Amount) { return inv.Address, usdx(1) },
		)
		w.hints(inv, hash)
		w.passes(time.Minute)
	}},
	"36 " + ruleConfirmed: {play: func(w *harness) {
		first, second := w.owes("USDX", usdx(100)), w.owes("USDX", usdx(100))
		w.paysOther(first, usdx(100), func(branch uint64) (chain.Address, chain.Amount) {
			if branch == 0 {
				return first.Address, usdx(100)
			}

			return second.Address, usdx(100)
		})
		w.passes(30 * time.Second)
		w.networks[0].fork(20, sim.Reinclude)
		w.passes(time.Minute)
	}},
	"37 " + ruleRest: {play: func(w *harness) {
		inv := w.owes("USDX", usdx(100))
		w.paysOther(
			inv,
			usdx(100),
			func(uint64) (chain.Address, chain.Amount) { return inv.Address, usdx(1) },
		)
		w.run(0)
	}},
	"38 " + ruleFailed: {play: func(w *harness) {
		w.paysOut("SIM", sims(5))
		w.steps(3)
		w.processes[0].nodes[0].denied = true
		w.passes(time.Minute)
	}},
	"39 " + ruleFailed: {play: func(w *harness) {
		w.deposits("USDX", usdx(100))
		w.processes[0].nodes[0].silent = true
		w.passes(2 * time.Minute)
	}},
	"40 " + rulePublished: {play: func(w *harness) {
		inv := w.owes("SIM", sims(100))
		w.networks[0].pay(inv.Address, "SIM", sims(100))
		w.passes(time.Minute)
		w.accounts().PayInternal(inv.Address, sims(100))
	}},
	"41 " + ruleAudit: {
		ends: true,
		play: func(w *harness) {
			inv := w.owes("SIM", sims(100))
			_, err := w.processes[0].alive().Invoices.Cancel(w.ctx, w.merchants[0].owner, inv.id)
			must(err)
			w.accounts().PayInternal(inv.Address, sims(100))
			w.passes(time.Minute)

			if w.oracle.untold() {
				w.oracle.checkAudit(false)
			}
		},
	},
	"42 " + ruleConfirmed: {play: func(w *harness) {
		w.accounts().SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
		w.deposits("USDX", usdx(100))
	}},
	"43 " + rulePublished: {
		plan: Plan{Nodes: 2, Unverified: true},
		play: func(w *harness) {
			inv := w.owes("USDX", usdx(100))
			hash := w.networks[0].pay(inv.Address, "USDX", usdx(100))
			n := w.processes[0].nodes[0]
			n.lies, n.faults = true, sim.NodeFaults{
				Denies:     []string{hash},
				DropsLogs:  []string{hash},
				DropsBloom: true,
			}

			w.passes(time.Minute)
		},
	},
	"44 " + ruleRest: {
		ends: true,
		play: func(w *harness) {
			inv := w.owes("USDX", usdx(100))
			w.accounts().PayFailing(inv.Address, "USDX", usdx(100))
			w.run(0)
			w.passes(10 * time.Minute)

			for id, p := range w.oracle.records.payments {
				if !ended(p) {
					w.oracle.violate(ruleRest, "payment %s is %s ten minutes after it reverted", id, p.Status)
				}
			}
		},
	},
	"45 " + ruleSent: {play: func(w *harness) {
		w.paysOut("SIM", sims(5))
		w.play(Op{Kind: RestoreBackup})
		w.passes(time.Minute)
		w.play(Op{Kind: RestoreBackup, A: 1})
		w.passes(time.Minute)
	}},
	"46 " + ruleProgress: {
		plan: Plan{Processes: 2},
		ends: true,
		play: func(w *harness) {
			first := w.processes[0]
			first.offset = time.Hour

			w.passes(time.Minute)
			first.offset, first.stoppedUntil = 0, w.clock.now().Add(2*time.Hour)
			w.passes(10 * time.Minute)
		},
	},
	"47 " + ruleProgress: {
		plan: Plan{Processes: 2},
		ends: true,
		play: func(w *harness) {
			w.processes[0].nodes[0].dead = true
			w.passes(10 * time.Minute)
		},
	},
	"48 " + ruleFailed: {
		plan: Plan{UTXO: true},
		play: func(w *harness) {
			w.outputs().SetMinerFloor(1_000_000)
			w.paysOut("SIMB", chain.Units(50_000))
			w.steps(3)
			w.paysOut("SIMB", chain.Units(60_000))
			w.passes(20 * time.Minute)
			w.outputs().SetMinerFloor(0)
		},
	},
	"49 " + ruleFair: {
		plan: Plan{UTXO: true},
		ends: true,
		play: func(w *harness) {
			address := w.depositAddress()
			for range 49 {
				w.outputs().Pay(address, chain.Units(300))
			}

			w.outputs().Pay(address, chain.Units(100_000))
			w.passes(10 * time.Minute)
			w.honestReleased(chain.Units(100_000))
		},
	},
	"50 " + ruleSpendable: {
		plan: Plan{UTXO: true},
		ends: true,
		play: func(w *harness) {
			m := w.merchants[0]
			w.outputs().Coinbase(m.wallets[0], chain.Pow10(8).Mul(50))
			w.passes(time.Minute)

			for _, b := range w.oracle.records.balances {
				if spendable := chain.Pow10(8).
					Mul(20); b.Address == m.wallets[0] &&
					spendable.Less(b.Available()) {
					w.oracle.violate(
						ruleSpendable,
						"wallet %s offers %s, and %s can be spent",
						b.Address,
						b.Available(),
						spendable,
					)
				}
			}
		},
	},
	"51 " + ruleProgress: {play: func(w *harness) {
		w.processes[0].nodes[0].lag = 100_000
		w.run(0)
	}},
	"61 " + ruleFrozen: {
		plan: Plan{ValidFor: time.Minute},
		play: func(w *harness) {
			w.paysOut("SIM", sims(5))
			w.run(0)
			w.networks[0].setFee(100_000)
			w.passes(4 * time.Hour)
		},
	},
	"63 " + ruleValued: {play: func(w *harness) { w.deposits("SIM", sims(100)) }},
	"63 " + ruleObject: {play: func(w *harness) {
		w.deposits("SIM", sims(100))
		w.networks[0].fork(6, sim.ReturnToPool)
		w.passes(time.Minute)
	}},
}

// Every fault that is open is shown by its scenario; every one that is mended is not. Whoever mends one sets
// open to false with the same commit.
func TestFaults(t *testing.T) {
	for _, row := range faultRows {
		name := fmt.Sprintf("%d %s", row.row, row.rule)

		t.Run(name, func(t *testing.T) {
			s, known := scenarios[name]
			if !known {
				t.Fatal("the row has no scenario")
			}

			s.plan.Tolerates = maps.Clone(tolerated)
			delete(s.plan.Tolerates, row.rule)

			violations := s.run(t)
			found := slices.ContainsFunc(violations, func(v Violation) bool { return v.Rule == row.rule })

			switch {
			case row.open && !found:
				t.Errorf("the row is open, and the oracle reports %v", violations)
			case !row.open && len(violations) > 0:
				t.Errorf("the row is mended, and the oracle reports %v", violations)
			case found:
				i := slices.IndexFunc(violations, func(v Violation) bool { return v.Rule == row.rule })
				t.Logf("%s", violations[i])
			}
		})
	}
}

// run plays a scenario; rules of other open rows are tolerated.
func (s scenario) run(t *testing.T) (violations []Violation) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := newHarness(context.Background(), s.plan, discard)

		for _, op := range s.plan.Ops {
			if len(w.oracle.violations) == 0 {
				w.play(op)
			}
		}

		if s.play != nil {
			s.play(w)
		}

		if !s.ends && len(w.oracle.violations) == 0 {
			w.finish()
		}

		violations = w.oracle.violations
	})

	return violations
}

// bill is an invoice with its one option.
type bill struct {
	id string
	invoice.Option
}

// owes creates an invoice of one option.
func (w *harness) owes(symbol string, amount chain.Amount) bill {
	m := w.merchants[0]

	inv, err := w.processes[0].alive().Invoices.Create(w.ctx, invoice.CreateParams{
		Owner:     m.owner,
		ExpiresIn: time.Hour,
		Options: []invoice.OptionParams{
			{Asset: symbol, Network: w.networks[0].slug(), Amount: amount},
		},
	})
	must(err)

	return bill{inv.ID, inv.Options[0]}
}

// paysOther pays a claim, which the pool shows, with another transfer in blocks, which may differ by branch.
func (w *harness) paysOther(
	b bill,
	claim chain.Amount,
	transfer func(branch uint64) (chain.Address, chain.Amount),
) string {
	return w.accounts().PayVariable(
		chain.Output{To: b.Address, AssetID: b.AssetID, Amount: claim},
		func(_, branch uint64) sim.Result {
			to, amount := transfer(branch)

			return sim.Result{Outputs: []chain.Output{{To: to, AssetID: b.AssetID, Amount: amount}}}
		},
	)
}

func (w *harness) accounts() *accountNetwork { return w.networks[0].(*accountNetwork) }

func (w *harness) hints(b bill, hash string) {
	_, err := w.processes[0].alive().Invoices.Hint(w.ctx, b.id, hash)
	must(err)
}

// depositAddress returns a new deposit address.
func (w *harness) depositAddress() chain.Address {
	d, err := w.processes[0].alive().Invoices.CreateDeposit(
		w.ctx, invoice.DepositParams{Owner: w.merchants[0].owner, Network: w.networks[0].slug()},
	)
	must(err)

	return d.Address
}

// deposits pays a new deposit address.
func (w *harness) deposits(symbol string, amount chain.Amount) {
	w.networks[0].pay(w.depositAddress(), symbol, amount)
	w.passes(20 * time.Second)
}

func (w *harness) outputs() *utxoNetwork { return w.networks[0].(*utxoNetwork) }

// honestReleased checks that a deposit of an amount was released, at the cost of its own input.
func (w *harness) honestReleased(gross chain.Amount) {
	const perDeposit = 5_000 // the fee of one input and two outputs is about 2,000

	for id, s := range w.oracle.records.settlements {
		switch {
		case s.Gross != gross:
		case s.Status != settlement.Released:
			w.oracle.violate(ruleFair, "settlement %s of %s is %s %s", id, s.Gross, s.Status, s.Reason)
		case chain.Units(perDeposit).Less(s.NetworkFees):
			w.oracle.violate(ruleFair, "settlement %s of %s cost %s", id, s.Gross, s.NetworkFees)
		}
	}
}

// paysOut asks for a payout.
func (w *harness) paysOut(symbol string, amount chain.Amount) {
	m := w.merchants[0]

	p, err := w.processes[0].alive().Payouts.Create(w.ctx, payout.Params{
		Owner:       event.Owner{AccountID: m.owner.AccountID},
		Network:     w.networks[0].slug(),
		Asset:       symbol,
		Amount:      amount,
		Destination: string(w.networks[0].newAddress()),
		RequestedBy: requester,
	})
	must(err)

	m.payouts = append(m.payouts, p.ID)
}

func (w *harness) steps(n int) {
	for range n {
		w.clock.advance(time.Second)
		w.run(0)
	}
}

// passes lets time pass in steps of five seconds, up to the first violation.
func (w *harness) passes(d time.Duration) {
	for range d / (5 * time.Second) {
		if len(w.oracle.violations) > 0 {
			return
		}

		w.pass(5 * time.Second)
	}
}
