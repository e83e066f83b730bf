package moneyout_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

// Pitfalls 13 and 16: whatever the node answers to a broadcast, the payout is sent once.
func TestBroadcastThatGoesWrong(t *testing.T) {
	for name, spoil := range map[string]func(w *harness){
		"timed out after the node took it": func(w *harness) { w.chain.LoseNextResponses(3) },
		"timed out before it": func(w *harness) {
			w.chain.FailNext(
				sim.MethodBroadcast, sim.Unavailable(), 3,
			)
		},
		"refused for good": func(w *harness) {
			w.chain.FailNext(
				sim.MethodBroadcast,
				fault.New(fault.Invalid, "insufficient_funds", "the node dislikes it"), 3,
			)
		},
		"refused for now": func(w *harness) {
			w.chain.FailNext(sim.MethodBroadcast, fault.New(fault.State, "nonce_used", "the node lags"), 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
				w.fund(1, 0)
				p := w.pay("SIM", milli(1))
				spoil(w)
				w.work()

				if got := w.get(p.ID); got.Status != payout.Processing {
					t.Errorf("it is %s (%s)", got.Status, got.FailureCode)
				}

				p = w.becomes(p.ID, payout.Confirmed)
				w.arrived(p)
				w.once(p)

				if n := w.countEvents(event.PayoutBroadcast, p.ID); n != 1 {
					t.Errorf("payout.broadcast was told %d times", n)
				}

				w.clean(1, 0)
			})
		})
	}
}

// once checks that the chain holds one transfer to a payout's destination.
func (w *harness) once(p payout.Payout) {
	w.t.Helper()

	n := 0

	for _, m := range w.transfers() {
		if m.To == p.Destination {
			n++
		}
	}

	if n != 1 {
		w.t.Errorf("%d transfers to the destination of payout %s, want 1", n, p.ID)
	}
}

func (w *harness) transfers() (all []chain.Transfer) {
	w.t.Helper()
	head, err := w.chain.Head(w.t.Context())
	w.must(err)

	for from := uint64(0); from <= head.Tip.Height; {
		blocks, err := w.chain.Blocks(w.t.Context(), from, head.Tip.Height)
		w.must(err)

		for _, b := range blocks {
			all = append(all, b.Transfers...)
			from = b.Height + 1
		}
	}

	return all
}

func TestForgottenTransactionIsSentAgain(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		p := w.pay("SIM", milli(1))
		w.work()

		first := w.get(p.ID).TxHash
		for range 3 {
			if !w.chain.Drop(first) {
				t.Fatal("it does not wait in the pool")
			}

			time.Sleep(10 * time.Second)
			w.work()
		}

		p = w.becomes(p.ID, payout.Confirmed)
		if p.TxHash != first {
			t.Errorf("other bytes were sent: %s, first %s", p.TxHash, first)
		}

		w.arrived(p)
		w.once(p)
		w.clean(1, 0)
	})
}

// A node that answers from an old block neither takes anything back nor has anything sent twice.
func TestNodeThatAnswersFromAnOldBlock(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		first := w.becomes(w.pay("SIM", milli(1)).ID, payout.Included)
		w.chain.Lag(8)

		second := w.pay("SIM", milli(2))
		for range 5 {
			w.pass(5 * time.Second)
			w.work()

			if got := w.get(first.ID); got.Status != payout.Included && got.Status != payout.Confirmed {
				t.Fatalf("the lagging node brought it back to %s", got.Status)
			}
		}

		w.chain.Lag(0)

		for _, p := range []payout.Payout{first, second} {
			p = w.becomes(p.ID, payout.Confirmed)
			w.arrived(p)
			w.once(p)
		}

		w.clean(1, 0)
	})
}

// A fee that rises after the signature: replaced within max_network_fee, and never above it.
func TestFeeSpike(t *testing.T) {
	t.Run("within the maximum", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)
			p := w.pay("SIM", milli(1))
			w.work()
			first := w.get(p.ID).TxHash
			w.chain.SetFee(3*sim.DefaultBaseFee, sim.DefaultPriority)

			p = w.becomes(p.ID, payout.Confirmed)
			if p.TxHash == first || w.attempts(p) < 2 {
				t.Errorf("it was not replaced: %d attempts", w.attempts(p))
			}

			w.arrived(p)
			w.once(p)
			w.clean(1, 0)
		})
	})
	t.Run("beyond the maximum, after the signature", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)
			p := w.pay("SIM", milli(1))
			w.work()
			w.chain.SetFee(100*sim.DefaultBaseFee, sim.DefaultPriority)

			for range 60 {
				w.pass(time.Minute)
				w.work()

				if got := w.get(p.ID); got.Status != payout.Processing {
					t.Fatalf("it is %s (%s)", got.Status, got.FailureCode)
				}
			}

			w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
			p = w.becomes(p.ID, payout.Confirmed)
			w.arrived(p)
			w.once(p)
			w.clean(1, 0)
		})
	})
	t.Run("beyond the maximum, before the signature", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)
			p := w.pay("SIM", milli(1))
			w.chain.SetFee(100*sim.DefaultBaseFee, sim.DefaultPriority)

			p = w.becomes(p.ID, payout.Failed)
			if p.FailureCode != "stale" {
				t.Errorf("failed as %+v", p)
			}

			w.arrived(p)
			w.clean(1, 0)
		})
	})
	t.Run("for good: displaced by a transfer to oneself", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)
			p := w.pay("SIM", milli(1))
			w.work()
			w.chain.SetFee(100*sim.DefaultBaseFee, sim.DefaultPriority)

			for range 6 * 60 {
				w.pass(time.Minute)
				w.work()
			}

			p = w.becomes(p.ID, payout.Failed)
			if resource := p.Resource(); p.FailureCode != "conflict" || p.FailureMessage == "" ||
				resource.NetworkFee != "" || resource.Conflict.NetworkFee == "" {
				t.Errorf("failed as %+v", p)
			}

			w.arrived(p)
			w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
			next := w.becomes(w.pay("SIM", milli(1)).ID, payout.Confirmed) // the wallet goes on
			w.arrived(next)
			w.clean(1, 0)
		})
	})
}

// attempts returns how many sets of bytes were signed for a payout.
func (w *harness) attempts(p payout.Payout) int {
	w.t.Helper()
	txs, err := internal.Of(w.engine).Store().TransactionsOf(w.t.Context(), p.ID)
	w.must(err)

	if len(txs) != 1 {
		w.t.Fatalf("payout %s has %d transactions", p.ID, len(txs))
	}

	return len(txs[0].Attempts)
}

// Somebody else holds the key. Their transaction takes the nonce of a payout: conflict, only once
// it is final. The audit names the foreign transaction.
func TestForeignTransactionOfTheSameWallet(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		w.arrived(w.becomes(w.pay("SIM", milli(1)).ID, payout.Confirmed))
		w.clean(1, 0)
		p := w.pay("SIM", milli(1))
		w.work()
		foreign := w.chain.CancelNonce(w.master())
		w.pass(time.Second)
		w.work()

		if got := w.get(p.ID); got.Status != payout.Processing {
			t.Errorf("it is %s (%s) before the other transaction is final", got.Status, got.FailureCode)
		}

		p = w.becomes(p.ID, payout.Failed)
		if p.FailureCode != "conflict" {
			t.Errorf("failed as %+v", p)
		}

		w.arrived(p)
		w.found(audit.ForeignTransaction, w.master())

		// The wallet is frozen until a person has said what it was.
		w.must(w.engine.Acknowledge(t.Context(), network, foreign, payments.Foreign))

		next := w.becomes(w.pay("SIM", milli(2)).ID, payout.Confirmed)
		w.arrived(next)
		w.once(next)
	})
}

// found checks that an audit finds one difference, of a kind, at an address.
func (w *harness) found(kind audit.Kind, at chain.Address) audit.Difference {
	w.t.Helper()
	a, err := w.engine.Audit(w.t.Context())
	w.must(err)

	all := a.Differences()
	if a.Clean() || len(all) != 1 || all[0].Kind != kind || all[0].Address != at || all[0].Message == "" {
		w.t.Fatalf("the audit found %+v, want one %s", all, kind)
	}

	return all[0]
}

// among checks that an audit finds one difference of each of two kinds, and returns the first.
func (w *harness) among(kind, other audit.Kind) (found audit.Difference) {
	w.t.Helper()
	a, err := w.engine.Audit(w.t.Context())
	w.must(err)

	kinds := map[audit.Kind]int{}

	for _, d := range a.Differences() {
		if kinds[d.Kind]++; d.Kind == kind {
			found = d
		}
	}

	if len(a.Differences()) != 2 || kinds[kind] != 1 || kinds[other] != 1 {
		w.t.Fatalf("the audit found %+v, want one %s and one %s", a.Differences(), kind, other)
	}

	return found
}

// The wallet is emptied between the promise and the signature.
func TestWalletDrainedBySomebodyElse(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		w.arrived(w.becomes(w.pay("SIM", milli(1)).ID, payout.Confirmed))
		p := w.pay("SIM", milli(500))
		master, err := internal.Of(w.engine).Transactions.MasterWallet(t.Context(), network, w.account.Index)
		w.must(err)
		foreign := w.spend(
			master, chain.Output{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: milli(900)},
		)
		began := time.Now()

		w.live("the theft is final", func() bool {
			return w.engine.Acknowledge(t.Context(), network, foreign, payments.Foreign) == nil
		})

		p = w.becomes(p.ID, payout.Failed)
		if p.FailureCode != "chain:insufficient_funds" || p.FailureMessage == "" {
			t.Errorf("failed as %+v", p)
		}

		if time.Since(began) < 5*time.Minute {
			t.Errorf("it failed after %s: the node may only have lagged", time.Since(began))
		}

		w.arrived(p)
		_, err = w.engine.Payouts.Create(t.Context(), w.params("SIM", milli(500)))
		wantFault(t, err, fault.State, "insufficient_balance")

		next := w.becomes(w.pay("SIM", milli(5)).ID, payout.Confirmed)
		w.arrived(next)
	})
}

// The destination cannot take the asset: known before the signature, or found out by execution.
func TestDestinationThatCannotBePaid(t *testing.T) {
	t.Run("before the signature", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 100)
			p := w.pay("USDX", dollars(1))
			w.chain.Freeze(p.Destination, "USDX", true)

			p = w.becomes(p.ID, payout.Failed)
			if p.FailureCode != "destination_not_payable" || p.NetworkFee != nil || p.TxHash != "" {
				t.Errorf("failed as %+v", p)
			}

			w.arrived(p)
			w.clean(1, 100)
		})
	})
	t.Run("in the block", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 100)
			p := w.pay("USDX", dollars(1))
			w.work()
			w.chain.Freeze(p.Destination, "USDX", true)
			p = w.becomes(p.ID, payout.Included)

			p = w.becomes(p.ID, payout.Failed)
			if p.FailureCode != "reverted" || p.NetworkFee == nil ||
				w.countEvents(event.PayoutFailed, p.ID) != 1 {
				t.Errorf("failed as %+v", p)
			}

			w.arrived(p)
			w.clean(1, 100)
		})
	})
}

// On networks whose bytes run out, they are made again once they are proven dead, and expired in the end.
func TestBytesThatRunOut(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{ValidBlocks: 5}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		p := w.pay("SIM", milli(1))
		w.chain.FailNext(sim.MethodBroadcast, sim.Unavailable(), 10_000)

		p = w.becomes(p.ID, payout.Failed)
		if p.FailureCode != "expired" || p.TxHash != "" || w.attempts(p) < 2 {
			t.Errorf("failed as %+v after %d attempts", p, w.attempts(p))
		}

		w.arrived(p)
		w.clean(1, 0)
	})
}

// A block leaves the chain after the payout was in it.
func TestReorganisation(t *testing.T) {
	for name, depth := range map[payout.Status]uint64{payout.Included: 1, payout.Confirmed: 4} {
		for _, fate := range []sim.OrphanFate{sim.Reinclude, sim.ReturnToPool, sim.DropOrphan} {
			t.Run(string(name)+" and "+fateName[fate], func(t *testing.T) {
				inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
					w.fund(1, 0)
					p := w.becomes(w.pay("SIM", milli(1)).ID, name)
					hash := p.TxHash

					w.chain.Fork(sim.Fork{Depth: depth, Fate: fate})

					saw := map[payout.Status]bool{}

					for range 40 {
						time.Sleep(10 * time.Second)
						w.work()
						now := w.get(p.ID)

						saw[now.Status] = true
						if now.Status == payout.Processing &&
							(now.NetworkFee != nil || !now.ConfirmedAt.IsZero()) {
							t.Fatalf("out of its block it still has a fee or a confirmation: %+v", now)
						}
					}

					if saw[payout.Failed] || fate != sim.Reinclude && !saw[payout.Processing] {
						t.Errorf("it was seen as %v", saw)
					}

					p = w.becomes(p.ID, payout.Confirmed)
					if p.NetworkFee == nil || p.ConfirmedAt.IsZero() ||
						w.countEvents(event.PayoutBroadcast, p.ID) != 1 {
						t.Errorf("confirmed as %+v", p)
					}

					if w.attempts(p) == 1 && p.TxHash != hash {
						t.Errorf("the hash became %s", p.TxHash)
					}

					w.arrived(p)
					w.once(p)
					w.clean(1, 0)
				})
			})
		}
	}
}

var fateName = map[sim.OrphanFate]string{
	sim.Reinclude:    "included again",
	sim.ReturnToPool: "back in the pool",
	sim.DropOrphan:   "forgotten",
}
