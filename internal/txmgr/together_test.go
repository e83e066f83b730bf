package txmgr_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// Several payouts in one transaction.

var together = sim.Config{MaxOutputs: 8}

// carried checks that the payouts are paid by one transaction, the first one's.
func (w *harness) carried(ids ...string) {
	w.t.Helper()

	first := w.get(ids[0])
	if len(first.Attempts) == 0 || !slices.Equal(first.BatchMembers, ids[1:]) || first.BatchedBy != "" {
		w.t.Fatalf("the oldest is %+v", first)
	}

	var want []chain.Output

	for i, id := range ids {
		row := w.get(id)

		want = append(want, walletstate.OwnOutputs(row)...)
		if i > 0 && (row.BatchedBy != first.ID || len(row.Attempts) > 0 || !row.DueAt.IsZero()) {
			w.t.Errorf("carried as %+v", row)
		}

		if row.State != first.State || row.TxHash != first.TxHash || row.Block != first.Block ||
			row.Failure != first.Failure {
			w.t.Errorf(
				"%s is %s (%s), the oldest %s (%s)",
				id, row.State, row.TxHash, first.State, first.TxHash,
			)
		}
	}

	for _, a := range first.Attempts {
		if !slices.Equal(a.Signed.Outputs, want) {
			w.t.Errorf("attempt %s pays %+v, want %+v", a.Signed.TxHash, a.Signed.Outputs, want)
		}
	}
}

// three queues payouts of 1, 2 and 3 coins.
func (w *harness) three() []string {
	w.t.Helper()
	return []string{w.payout("SIM", coin(1)).ID, w.payout("SIM", coin(2)).ID, w.payout("SIM", coin(3)).ID}
}

func (w *harness) cancel(id string) error {
	return w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		_, err := w.outbox.CancelTx(ctx, tx, id)
		return err
	})
}

func TestPayoutsLeaveTogether(t *testing.T) {
	w := newHarness(t, together)

	var asked []chain.Intent

	w.policy = func(r chain.SignRequest) error { asked = append(asked, r.Intent); return nil }
	ids := w.three()
	w.work()
	w.carried(ids...)

	if len(asked) != 1 || asked[0].ObjectID != w.get(ids[0]).ObjectID || len(asked[0].Outputs) != 3 ||
		len(asked[0].ObjectIDs) != 3 {
		t.Fatalf("the signer was asked for %+v", asked)
	}

	for i, id := range ids {
		if row := w.get(
			id,
		); asked[0].ObjectIDs[i] != row.ObjectID ||
			asked[0].Outputs[i] != walletstate.OwnOutputs(row)[0] {
			t.Errorf(
				"output %d was asked for as %s %+v, it is of %+v",
				i, asked[0].ObjectIDs[i], asked[0].Outputs[i], row,
			)
		}
	}

	if err := w.cancel(ids[1]); !errors.Is(err, fault.State) || fault.Code(err) != "transaction_signed" {
		t.Errorf("canceling a signed one: %v", err)
	}

	fee := w.until(ids[0], wallet.Included).Fee
	w.carried(ids...)

	var sum chain.Amount

	for _, id := range ids {
		w.confirmed(id)
		sum = sum.Add(walletstate.OwnFee(w.get(id)))

		want := []wallet.State{
			wallet.Queued,
			wallet.Signed,
			wallet.Broadcast,
			wallet.Included,
			wallet.Confirmed,
		}
		if s := w.states(id); !slices.Equal(s, want) {
			t.Errorf("told of %s: %v, want %v", id, s, want)
		}
	}

	if sum != fee || fee.IsZero() {
		t.Errorf("the shares add up to %s, the network took %s", sum, fee)
	}

	for _, f := range w.moves {
		if f.Version == 0 || f.ObjectID != w.get(f.ID).ObjectID {
			t.Errorf("told as %+v", f)
		}
	}

	if w.chain.Calls(sim.MethodBroadcast) != 1 {
		t.Errorf("%d broadcasts", w.chain.Calls(sim.MethodBroadcast))
	}
}

func TestOnlyWhatCanGoTogetherDoes(t *testing.T) {
	w := newHarness(t, sim.Config{MaxOutputs: 3})
	usd := []string{w.payout("USDX", dollars(1)).ID}
	ids := w.three()
	usd = append(usd, w.payout("USDX", dollars(2)).ID)
	last := w.payout("SIM", coin(4))
	topUp := w.enqueue(wallet.Transaction{
		Owner:    owner,
		Network:  network,
		Kind:     wallet.TopUp,
		ObjectID: "release",
		GiveUpAt: w.now.Add(time.Hour),
		Order: chain.Order{
			From:    w.master(),
			Outputs: []chain.Output{{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: coin(1)}},
			MaxFee:  milli(10),
		},
	})
	w.work()
	w.carried(usd...)
	w.carried(ids...)
	w.carried(last.ID)
	w.carried(topUp.ID)

	for _, id := range append(append(usd, ids...), last.ID, topUp.ID) {
		w.confirmed(id)
	}
}

// What is carried does not count as in flight.
func TestHundredPayoutsLeaveAtOnce(t *testing.T) {
	w := newHarness(t, together)
	sent := 0

	for _, round := range []int{96, 24} {
		var ids []string
		for range round {
			ids = append(ids, w.payout("USDX", dollars(1)).ID)
		}

		w.work()

		for _, id := range ids {
			if got := w.get(id); got.State != wallet.Broadcast {
				t.Fatalf("it is %s", got.State)
			}
		}

		if sent += round / 8; w.chain.Calls(sim.MethodBroadcast) != sent {
			t.Errorf("%d transactions, want %d of 8", w.chain.Calls(sim.MethodBroadcast), sent)
		}
	}
}

func TestTwoPayoutsToOneDestination(t *testing.T) {
	w := newHarness(t, together)
	to := w.chain.NewAddress()
	ids := []string{
		w.payoutTo(to, "SIM", coin(1), milli(10)).ID,
		w.payoutTo(to, "SIM", coin(1), milli(10)).ID,
		w.payoutTo(to, "SIM", coin(2), milli(10)).ID,
	}
	w.until(ids[2], wallet.Confirmed)
	w.carried(ids...)

	if got := w.chain.Balance(to, "SIM"); got != coin(4) {
		t.Errorf("%s arrived of 4 coins", got)
	}
}

// What one of them meets harms no other: all are signed one by one.
func TestOneOfThreeCannotBePaid(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *harness, bad wallet.Transaction)
		state wallet.State
		want  string
	}{
		"refused": {
			func(w *harness, bad wallet.Transaction) {
				w.policy = func(r chain.SignRequest) error {
					if slices.Contains(r.Intent.ObjectIDs, bad.ObjectID) {
						return chain.Refuse("limit")
					}

					return nil
				}
			},
			wallet.Failed,
			wallet.FailSignerRefused + "limit",
		},
		"the signer has no answer": {
			func(w *harness, bad wallet.Transaction) {
				w.policy = func(r chain.SignRequest) error {
					if slices.Contains(r.Intent.ObjectIDs, bad.ObjectID) {
						return errors.New("the reviewer is away")
					}

					return nil
				}
			},
			wallet.Queued,
			"",
		},
		"not payable": {
			func(w *harness, bad wallet.Transaction) {
				w.chain.Freeze(bad.Order.Outputs[0].To, "SIM", true)
			},
			wallet.Failed,
			wallet.FailNotPayable,
		},
		"too little money": {
			func(w *harness, bad wallet.Transaction) {
				w.rewrite(bad.ID, func(t *wallet.Transaction) { t.Order.Outputs[0].Amount = coin(1000) })
			},
			wallet.Queued,
			"",
		},
		"too high a fee": {
			func(w *harness, bad wallet.Transaction) {
				w.rewrite(bad.ID, func(t *wallet.Transaction) { t.Order.MaxFee = chain.Units(1) })
			},
			wallet.Queued,
			"",
		},
		"canceled before": {
			func(w *harness, bad wallet.Transaction) {
				if err := w.cancel(bad.ID); err != nil {
					w.t.Fatal(err)
				}
			},
			wallet.Failed,
			wallet.FailCanceled,
		},
		"its time is over": {
			func(w *harness, bad wallet.Transaction) {
				w.rewrite(bad.ID, func(t *wallet.Transaction) { t.GiveUpAt = w.now })
			},
			wallet.Failed,
			wallet.FailStale,
		},
	} {
		for i := range 3 {
			t.Run(fmt.Sprintf("%s, number %d", name, i), func(t *testing.T) {
				w := newHarness(t, together)
				ids := w.three()
				bad := w.get(ids[i])
				c.spoil(w, bad)
				w.work()

				most := 4
				if c.want == wallet.FailNotPayable {
					most++ // another node is asked
				}

				if n := w.chain.Calls(sim.MethodBuild); n > most {
					t.Errorf("%d were built: all together once, and each alone", n)
				}

				for _, id := range ids {
					got := w.get(id)
					if id == bad.ID {
						if got.State != c.state || got.Failure != c.want || len(got.Attempts) > 0 ||
							got.BatchedBy != "" {
							t.Errorf("it is %s %q", got.State, got.Failure)
						}

						continue
					}

					if got.State != wallet.Broadcast || slices.Contains(got.BatchMembers, bad.ID) {
						t.Errorf("another one is %s, carries %v", got.State, got.BatchMembers)
					}
				}

				w.policy = nil
				for _, id := range slices.DeleteFunc(ids, func(id string) bool { return id == bad.ID }) {
					w.confirmed(id)
				}
			})
		}
	}
}

// rewrite changes a row behind the outbox's back.
func (w *harness) rewrite(id string, change func(t *wallet.Transaction)) {
	w.t.Helper()

	err := w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		t, err := tx.Transaction(ctx, id)
		if err != nil {
			return err
		}

		t.Order.Outputs = slices.Clone(t.Order.Outputs)
		change(&t)

		return tx.PutTransaction(ctx, &t)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// A cancellation, or the end of its time, that comes while all are signed: the signatures are
// thrown away, and the others leave together.
func TestOneOfThreeIsMovedWhileAllAreSigned(t *testing.T) {
	for name, c := range map[string]struct {
		move func(w *harness, id string)
		want string
	}{
		"canceled": {
			func(w *harness, id string) {
				if err := w.cancel(id); err != nil {
					w.t.Error(err)
				}
			},
			wallet.FailCanceled,
		},
		"its time is over": {
			func(w *harness, id string) { w.rewrite(id, func(t *wallet.Transaction) { t.GiveUpAt = w.now }) },
			wallet.FailStale,
		},
	} {
		for i := range 3 {
			t.Run(fmt.Sprintf("%s, number %d", name, i), func(t *testing.T) {
				w := newHarness(t, together)
				ids := w.three()
				asked := 0
				w.policy = func(chain.SignRequest) error {
					if asked++; asked == 1 {
						c.move(w, ids[i])
					}

					return nil
				}
				w.work()

				if got := w.get(ids[i]); got.Failure != c.want {
					t.Errorf("it is %s %q", got.State, got.Failure)
				}

				rest := slices.Delete(slices.Clone(ids), i, i+1)
				w.carried(rest...)

				if asked != 2 || w.chain.Calls(sim.MethodBroadcast) != 1 {
					t.Errorf("asked %d times, %d broadcasts", asked, w.chain.Calls(sim.MethodBroadcast))
				}

				for _, id := range rest {
					w.confirmed(id)
				}
			})
		}
	}
}

func TestReplacedTogether(t *testing.T) {
	w := newHarness(t, together)
	ids := w.three()
	w.work()
	first := w.get(ids[0]).TxHash
	w.chain.SetFee(15*sim.DefaultBaseFee, sim.DefaultPriority)
	w.until(ids[0], wallet.Included)
	w.carried(ids...)

	got := w.get(ids[0])
	if len(got.Attempts) < 2 || got.TxHash == first || got.Order.MaxFee.Less(got.Fee) {
		t.Errorf("included as %+v", got)
	}

	for _, id := range ids {
		if row := w.confirmed(id); milli(10).Less(walletstate.OwnFee(row)) {
			t.Errorf("%s cost %s", id, walletstate.OwnFee(row))
		}
	}
}

func TestDisplacedTogether(t *testing.T) {
	for _, by := range []string{"somebody else", "a transfer to oneself"} {
		t.Run(by, func(t *testing.T) {
			w := newHarness(t, together)
			ids := w.three()
			w.work()

			if by == "somebody else" {
				w.chain.Replace(w.get(ids[0]).TxHash)
			} else {
				w.chain.SetFee(50_000*sim.DefaultBaseFee, sim.DefaultPriority)

				for range 7 * 12 {
					w.pass(5 * time.Minute)
					w.work()
				}
			}

			got := w.until(ids[0], wallet.Failed)
			w.carried(ids...)

			if got.Failure != wallet.FailConflict {
				t.Errorf("failed as %s", got.Failure)
			}

			for _, id := range ids {
				if n := w.chain.Balance(walletstate.OwnOutputs(w.get(id))[0].To, "SIM"); !n.IsZero() {
					t.Errorf("%s were sent by a payout that failed", n)
				}
			}

			w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
			w.confirmed(w.payout("SIM", coin(3)).ID)
		})
	}
}

func TestReorganisationTogether(t *testing.T) {
	for name, fate := range map[string]sim.OrphanFate{
		"forgotten":        sim.DropOrphan,
		"back in the pool": sim.ReturnToPool,
		"in another block": sim.Reinclude,
	} {
		for state, depth := range map[wallet.State]uint64{wallet.Included: 1, wallet.Confirmed: 8} {
			t.Run(fmt.Sprintf("%s, %s", state, name), func(t *testing.T) {
				w := newHarness(t, together)
				ids := w.three()
				before := w.until(ids[0], state)
				w.fork(sim.Fork{Depth: depth, Fate: fate})
				w.carried(ids...)

				want := wallet.Broadcast
				if fate == sim.Reinclude && state == wallet.Included {
					want = wallet.Included // in the other block, as is about to be seen
				}

				if got := w.get(ids[2]).State; got != want {
					t.Errorf("with the fork it is %s, want %s", got, want)
				}

				w.work()
				w.carried(ids...)

				if got := w.get(
					ids[2],
				); fate != sim.Reinclude &&
					(got.State != wallet.Broadcast || !got.Fee.IsZero() || !got.Block.IsZero()) {
					t.Errorf("after its block left: %+v", got)
				}

				for _, id := range ids {
					w.confirmed(id)
				}

				if got := w.get(ids[0]); len(got.Attempts) != 1 || got.Block.Hash == before.Block.Hash {
					t.Errorf("confirmed as %+v", got)
				}
			})
		}
	}
}
