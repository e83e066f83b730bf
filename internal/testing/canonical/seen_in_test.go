//go:build unix

package canonical_test

// This file holds faults of money in that were seen on real nodes: what arrived, and nothing else, is paid.

import (
	"math/big"
	"testing"
	"time"

	usd "github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
)

const dollars100, aSeventh, onePercent = "100000000", "14285714", "1000000"

// keep leaves deposits where they are.
var keep = account.Settings{ManualRelease: true}

// play plays scenarios on one stage. The race detector is left out: a service is a process of its own, which does one
// thing at a time, and the random runs show it to the detector.
func play(t *testing.T, scenarios map[string]func(t *testing.T, s *stage)) {
	t.Helper()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	raced.Skip(t)

	s := newStage(t)
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) { scenario(t, s) })
	}
}

// Rows 35 and 36 of the pitfalls: credited, never arrived.
func TestNothingIsCreditedThatDidNotArrive(t *testing.T) {
	deep := func(state int, first, second string) func(t *testing.T, s *stage) {
		return func(t *testing.T, s *stage) { paysOtherwiseAfterADeepFork(t, s, state, first, second) }
	}

	play(t, map[string]func(t *testing.T, s *stage){
		"hint of a token with a fee, pool off": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{Pool: evm.PoolOff}, keep)
			w.setFee(noReturn, 9900)

			inv := w.sell("NORETURN", dollars100)
			w.hint(inv, w.transfer(1+noReturn, noReturn, inv, 100_000_000))
			w.want(inv, "pending", "0")
			w.blocks(confirmations)
			w.want(inv, "underpaid", onePercent)

			if held := w.heldBy(inv, noReturn); held != onePercent {
				t.Errorf("%s arrived", held)
			}
		},
		"hint of a paying contract, fork of one block": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv := w.sell("HONEST", dollars100)
			w.onBranch(paysAll)
			hash, raw := w.payByBranch(inv, inv)
			w.mine(1)
			w.hint(inv, hash)
			w.want(inv, "pending", "0")
			w.fork(1, paysASeventh, raw)
			w.blocks(confirmations)
			w.want(inv, "underpaid", aSeventh)

			if held := w.heldBy(inv, honest); held != aSeventh {
				t.Errorf("%s arrived", held)
			}
		},
		"another amount after a deep fork":   deep(paysASeventh, "underpaid", "open"),
		"another receiver after a deep fork": deep(paysAnother, "open", "paid"),
	})
}

// paysOtherwiseAfterADeepFork has a confirmed payment pay otherwise, with the same hash and index of its log.
func paysOtherwiseAfterADeepFork(t *testing.T, s *stage, state int, first, second string) {
	const depth = confirmations + 2

	w := s.begin(t, orders{}, keep)
	inv, other := w.sell("HONEST", dollars100), w.sell("HONEST", dollars100)
	w.blocks(depth)
	w.onBranch(paysAll)
	_, raw := w.payByBranch(inv, other)
	w.blocks(depth)
	w.want(inv, "paid", dollars100)

	w.fork(depth, state, raw)
	w.blocks(confirmations)
	w.want(inv, first, w.heldBy(inv, honest))
	w.want(other, second, w.heldBy(other, honest))

	if w.happened("payment.orphaned") != 1 || w.happened("invoice.payment_reversed") != 1 {
		t.Errorf("nobody is told: %+v", w.events())
	}

	if found := w.audit(); len(found) != 0 {
		t.Errorf("the audit finds %v", found)
	}
}

// Row 37 of the pitfalls: stuck for ever.
func TestEveryDifferenceHasAnExit(t *testing.T) {
	ends := func(w *scenario, inv money, paid string) {
		w.want(inv, "underpaid", paid)

		if all := w.paymentsTo(inv); len(all) != 1 || all[0].Status != "confirmed" || all[0].Amount != paid {
			w.t.Errorf("the payments are %+v", all)
		}

		w.later(lost)
		w.blocks(1)
		w.want(inv, "expired", paid)
	}

	play(t, map[string]func(t *testing.T, s *stage){
		"a token with a fee, seen in the pool": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			w.setFee(noReturn, 9900)

			inv := w.sell("NORETURN", dollars100)
			w.transfer(1+noReturn, noReturn, inv, 100_000_000)
			w.pass(time.Second)
			w.want(inv, "pending", "0")
			w.blocks(confirmations)
			ends(w, inv, onePercent)
		},
		"mined again with another amount": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv := w.sell("HONEST", dollars100)
			w.onBranch(paysAll)
			_, raw := w.payByBranch(inv, inv)
			w.blocks(1)
			w.want(inv, "pending", "0")
			w.fork(1, paysASeventh, raw)
			w.blocks(confirmations)
			ends(w, inv, aSeventh)
		},
	})
}

// Row 42 of the pitfalls: over-credited.
func TestTokensThatSayMoreThanArrives(t *testing.T) {
	scenarios := map[string]func(t *testing.T, s *stage){}
	for name, token := range map[string]int{"fee by a second log": gross, "fee without a log": silent} {
		scenarios[name] = func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv := w.sell(s.tokens[token].Symbol, dollars100)
			w.transfer(1+token, token, inv, 100_000_000)
			w.blocks(confirmations)
			w.want(inv, "underpaid", "99000000")

			if held := w.heldBy(inv, token); held != "99000000" {
				t.Errorf("%s arrived", held)
			}
		}
	}

	play(t, scenarios)
}

// Row 44 of the pitfalls: held hostage.
func TestNobodyIsHeldHostage(t *testing.T) {
	const fortune = 2_500_000_000_000

	tiers := []chain.Tier{{FromUSD: usd.NewFromInt(1_000_000), Confirmations: 60}}
	threaten := func(threat func(w *scenario, to money)) func(t *testing.T, s *stage) {
		return func(t *testing.T, s *stage) {
			w := s.begin(t, orders{Tiers: tiers, Pool: evm.PoolContent}, keep)
			d := w.deposit()
			w.transfer(1+honest, honest, d, 5_000_000)
			w.blocks(1)
			threat(w, d)
			w.pass(time.Second)

			if all := w.paymentsTo(d); len(all) != 2 {
				t.Fatalf("the threat was not seen: %+v", all)
			}

			w.blocks(confirmations - 1)

			for _, p := range w.paymentsTo(d) {
				if (p.Amount == "5000000") != (p.Status == "confirmed") {
					t.Errorf("at %d blocks there is %+v", confirmations, p)
				}
			}
		}
	}

	play(t, map[string]func(t *testing.T, s *stage){
		"by a reverted transfer": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv := w.sell("HONEST", dollars100)
			w.transfer(beggar, honest, inv, 100_000_000)
			w.pass(time.Second)
			w.want(inv, "pending", "0")
			w.blocks(1)
			w.want(inv, "open", "0")

			var canceled money
			w.service.ask("POST", "/v1/invoices/"+inv.ID+"/cancel", "{}", &canceled)
			w.want(inv, "canceled", "0")
		},
		"by a fortune that reverts": threaten(func(w *scenario, to money) {
			w.transfer(beggar, honest, to, fortune)
		}),
		"by a fortune in the pool": threaten(func(w *scenario, to money) {
			hash := w.put(1+honest, map[string]any{
				"to":       w.tokens[honest].Contract,
				"data":     data("transfer(address,uint256)", to.Address, big.NewInt(fortune)),
				"gasPrice": "0x1",
			})
			w.call(nil, "anvil_setNextBlockBaseFeePerGas", hexOf(1e9))
			w.t.Cleanup(func() {
				w.call(nil, "anvil_dropTransaction", hash)
				w.call(nil, "anvil_setNextBlockBaseFeePerGas", "0x0")
			})
		}),
	})
}

// Rows 40, 41 and 43 of the pitfalls: unseen.
func TestNoMoneyStaysUnseen(t *testing.T) {
	play(t, map[string]func(t *testing.T, s *stage){
		"coin from contracts": func(t *testing.T, s *stage) { coinFromContracts(t, s) },
		"logs and bloom dropped by the preferred node": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv := w.sell("HONEST", dollars100)
			w.liars[0].instruct(lie{answer: withoutBloom})
			w.transfer(1+honest, honest, inv, 100_000_000)
			w.blocks(confirmations)
			w.want(inv, "paid", dollars100)

			if w.liars[0].lied() == 0 {
				t.Error("the preferred node was never asked")
			}
		},
	})
}

// coinFromContracts sends coin that no block names to invoices of every kind.
func coinFromContracts(t *testing.T, s *stage) {
	const part, rest = "400000000000000000", "600000000000000000"

	w := s.begin(t, orders{}, keep)
	beside, paid, canceled, expired := w.sell("ETH", coin), w.sell("ETH", coin), w.sell("ETH", coin),
		w.sell("ETH", coin)
	w.sendCoin(beside, false, part)
	w.sendCoin(paid, false, coin)
	w.service.ask("POST", "/v1/invoices/"+canceled.ID+"/cancel", "{}", &money{})
	w.blocks(confirmations)
	w.want(beside, "underpaid", part)
	w.want(paid, "paid", coin)

	w.sendCoin(beside, true, rest)
	w.within(time.Minute, "coin beside another payment counts", func() bool {
		return w.get(beside).Status == "paid"
	})

	w.later(2 * time.Hour)
	w.blocks(1)
	w.want(expired, "expired", "0")
	w.destroyInto(beside, part) // its only trace is the balance

	for _, closed := range []money{paid, canceled, expired} {
		w.sendCoin(closed, true, part)
	}

	w.blocks(1)

	if found := w.audit(); len(found) != 4 {
		t.Errorf("before it is found, the audit finds %v", found)
	}

	w.later(time.Hour)
	w.within(5*time.Minute, "coin to closed invoices counts", func() bool {
		for _, closed := range []money{beside, paid, canceled, expired} {
			if !counts(w.paymentsTo(closed), part) {
				return false
			}
		}

		return true
	})

	if found := w.audit(); len(found) != 0 {
		t.Errorf("afterwards the audit finds %v", found)
	}
}

// counts reports whether a confirmed payment of an amount names no transaction.
func counts(all []paymentView, amount string) bool {
	for _, p := range all {
		if p.TxHash == "" && p.Amount == amount && p.Status == "confirmed" {
			return true
		}
	}

	return false
}

// Row 63 of the pitfalls: notified too early.
func TestConfirmationsShowTheirValue(t *testing.T) {
	play(t, map[string]func(t *testing.T, s *stage){
		"of an invoice and a deposit address": func(t *testing.T, s *stage) {
			w := s.begin(t, orders{}, keep)
			inv, d := w.sell("HONEST", dollars100), w.deposit()
			w.transfer(1+honest, honest, inv, 100_000_000)
			w.transfer(1+honest, honest, d, 40_000_000)
			w.blocks(confirmations)

			values := map[string]any{}

			for _, e := range w.events() {
				payment, ok := e.Data.Object["payment"].(map[string]any)
				if !ok {
					payment = e.Data.Object
				}

				values[e.Type] = payment["usd_value"]
			}

			if values["invoice.payment_confirmed"] != "100" || values["deposit.payment_confirmed"] != "40" {
				t.Errorf("the values are %v", values)
			}
		},
	})
}
