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
)

func TestPayoutIsSignedSentIncludedConfirmed(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	got := w.confirmed(p.ID)

	want := []wallet.State{wallet.Queued, wallet.Signed, wallet.Broadcast, wallet.Included, wallet.Confirmed}
	if s := w.states(p.ID); !slices.Equal(s, want) {
		t.Errorf("told %v, want %v", s, want)
	}

	if got.Fee.IsZero() || len(got.Transfers) != 1 || got.Block.IsZero() || len(got.Attempts) != 1 {
		t.Errorf("confirmed as %+v", got)
	}

	for _, f := range w.moves {
		if f.ObjectID != p.ObjectID || f.Version == 0 {
			t.Errorf("told as %+v", f)
		}
	}

	w.now = w.now.Add(48 * time.Hour)
	w.chain.Mine(1)
	w.read()
	w.work()

	if due := w.get(p.ID).DueAt; !due.IsZero() {
		t.Errorf("still looked at two days later, at %s", due)
	}
}

func TestManyPayoutsOfOneWalletTakeOneNonceEach(t *testing.T) {
	w := newHarness(t, sim.Config{})

	var ids []string
	for i := range uint64(25) {
		ids = append(ids, w.payout("USDX", dollars(1+i)).ID)
	}

	nonces := map[uint64]bool{}
	for _, id := range ids {
		nonces[w.confirmed(id).Nonce] = true
	}

	for n := range uint64(25) {
		if !nonces[n] {
			t.Errorf("nonce %d was left out", n)
		}
	}
}

// Pitfall 16.
func TestTimeoutAtBroadcastIsNotAFailure(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.chain.LoseNextResponses(1)
	p := w.payout("SIM", coin(1))
	w.work()

	if got := w.get(p.ID); got.State != wallet.Signed || got.Attempts[0].LastSendError == "" {
		t.Fatalf("after the time-out: %+v", got)
	}

	w.wait(3 * time.Second)

	if got := w.get(p.ID); got.State != wallet.Broadcast {
		t.Fatalf("the node has it, and it is %s", got.State)
	}

	if got := w.confirmed(p.ID); len(got.Attempts) != 1 || w.chain.Calls(sim.MethodBroadcast) != 1 {
		t.Errorf("%d attempts, %d broadcasts", len(got.Attempts), w.chain.Calls(sim.MethodBroadcast))
	}
}

func TestRefusedBroadcastIsSentAgainNotFailed(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.chain.FailNext(sim.MethodBroadcast, fault.New(fault.Invalid, "insufficient_funds", "refused"), 5)

	p := w.payout("SIM", coin(1))
	for range 4 {
		w.work()
		w.pass(5 * time.Second)

		if got := w.get(p.ID); got.State != wallet.Signed {
			t.Fatalf("a refusal made it %s", got.State)
		}
	}

	if got := w.confirmed(p.ID); len(got.Attempts) != 1 {
		t.Errorf("%d sets of bytes for one refusal", len(got.Attempts))
	}
}

func TestForgottenTransactionIsSentAgain(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.work()

	if !w.chain.Drop(w.get(p.ID).TxHash) {
		t.Fatal("it is not in the pool")
	}

	if got := w.confirmed(p.ID); len(got.Attempts) != 1 || w.chain.Calls(sim.MethodBroadcast) != 2 {
		t.Errorf("%d attempts, %d broadcasts", len(got.Attempts), w.chain.Calls(sim.MethodBroadcast))
	}
}

func TestNodeThatLagsProvesNothing(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.until(p.ID, wallet.Included)
	w.chain.Lag(2)

	for range 10 {
		w.wait(time.Minute)

		if got := w.get(p.ID); got.State != wallet.Included {
			t.Fatalf("a node that lags made it %s", got.State)
		}
	}

	q := w.payout("SIM", coin(2))
	w.work()

	if got := w.get(q.ID); got.Nonce != 1 {
		t.Errorf("the second one took nonce %d", got.Nonce)
	}

	w.chain.Lag(0)
	w.confirmed(p.ID)
	w.confirmed(q.ID)

	if slices.Contains(w.states(p.ID)[4:], wallet.Broadcast) {
		t.Errorf("told %v", w.states(p.ID))
	}
}

// A node that lost its index says that it does not know the transaction, while its block is where it was.
func TestNodeWithoutIndexProvesNothing(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.until(p.ID, wallet.Included)

	w.forgetful = true
	for range 10 {
		w.wait(time.Minute)

		if got := w.get(p.ID); got.State != wallet.Included {
			t.Fatalf("a node without index made it %s", got.State)
		}
	}

	w.forgetful = false
	w.confirmed(p.ID)
}

func TestFeeSpikeReplacesWithinTheMaximum(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.work()
	first := w.get(p.ID).TxHash
	w.chain.SetFee(20*sim.DefaultBaseFee, sim.DefaultPriority)

	got := w.confirmed(p.ID)
	if len(got.Attempts) != 2 || got.TxHash == first || got.Order.MaxFee.Less(got.Fee) ||
		got.Attempts[1].Signed.Nonce != got.Attempts[0].Signed.Nonce {
		t.Errorf("confirmed as %+v", got)
	}
}

func TestEarlierAttemptThatWinsIsNoConflict(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.work()
	first := w.get(p.ID)
	w.wait(4 * time.Minute) // no block meanwhile: replaced

	second := w.get(p.ID)
	if len(second.Attempts) != 2 {
		t.Fatalf("%d attempts", len(second.Attempts))
	}
	// The network forgets the replacement and includes the first one.
	if !w.chain.Drop(second.TxHash) {
		t.Fatal("it is not in the pool")
	}

	if err := w.chain.Broadcast(t.Context(), first.Attempts[0].Signed); err != nil {
		t.Fatal(err)
	}

	w.chain.Mine(1)

	if got := w.confirmed(p.ID); got.TxHash != first.TxHash {
		t.Errorf("confirmed as %s, the first attempt is %s", got.TxHash, first.TxHash)
	}
}

// Pitfall 17.
func TestForeignTransactionTakesTheNonce(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.work()
	q := w.payout("SIM", coin(2))
	w.work()
	w.chain.Replace(w.get(p.ID).TxHash)
	w.chain.Mine(1)
	w.wait(time.Minute)

	if got := w.get(p.ID); got.State == wallet.Failed {
		t.Fatalf("failed before the proof is final: %+v", got)
	}

	got := w.until(p.ID, wallet.Failed)
	if got.Failure != wallet.FailConflict {
		t.Errorf("failed as %s", got.Failure)
	}

	if n := w.chain.Balance(got.Order.Outputs[0].To, "SIM"); !n.IsZero() {
		t.Errorf("%s were sent by a payout that failed", n)
	}

	w.confirmed(q.ID)
	w.confirmed(w.payout("SIM", coin(3)).ID)
}

func TestReorganisationAfterInclusion(t *testing.T) {
	for name, fate := range map[string]sim.OrphanFate{
		"forgotten":        sim.DropOrphan,
		"back in the pool": sim.ReturnToPool,
		"in another block": sim.Reinclude,
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			p := w.payout("SIM", coin(1))
			before := w.until(p.ID, wallet.Included)
			w.chain.Fork(sim.Fork{Depth: 1, Fate: fate})
			w.wait(10 * time.Second)

			if got := w.get(
				p.ID,
			); fate != sim.Reinclude &&
				(got.State != wallet.Broadcast || !got.Fee.IsZero() || !got.Block.IsZero()) {
				t.Errorf("after its block left: %+v", got)
			}

			got := w.confirmed(p.ID)
			if len(got.Attempts) != 1 || got.Block.Hash == before.Block.Hash {
				t.Errorf("confirmed as %+v", got)
			}
		})
	}
}

// Pitfall 10: deeper than what the network calls final.
func TestReorganisationAfterConfirmation(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.confirmed(p.ID)
	w.chain.Fork(sim.Fork{Depth: 8, Fate: sim.DropOrphan})
	w.wait(2 * time.Minute)

	got := w.get(p.ID)
	if got.State != wallet.Broadcast || !got.Fee.IsZero() {
		t.Fatalf("its block left the chain, and it is %s with fee %s", got.State, got.Fee)
	}

	if again := w.confirmed(p.ID); len(again.Attempts) != 1 || again.TxHash != got.TxHash {
		t.Errorf("sent again as %+v", again)
	}

	want := []wallet.State{
		wallet.Queued,
		wallet.Signed,
		wallet.Broadcast,
		wallet.Included,
		wallet.Confirmed,
		wallet.Broadcast, // its block is gone
		wallet.Broadcast, // it waits for another
		wallet.Included,
		wallet.Confirmed,
	}
	if s := w.states(p.ID); !slices.Equal(s, want) {
		t.Errorf("told %v, want %v", s, want)
	}
}

// Nobody read blocks for two days, and looked at the payout meanwhile: the fork is not known yet.
func TestReorganisationSeenDaysLater(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.confirmed(p.ID)
	w.chain.Fork(sim.Fork{Depth: 8, Fate: sim.DropOrphan})

	w.now = w.now.Add(48 * time.Hour)
	if _, err := w.outbox.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	if got := w.get(p.ID); got.State != wallet.Confirmed {
		t.Fatalf("without a block read since, it is %s", got.State)
	}

	w.read()

	if got := w.get(p.ID); got.State != wallet.Broadcast {
		t.Fatalf("its block left the chain, and it is %s", got.State)
	}

	w.confirmed(p.ID)
}

// Its row was final, and a fork was taken in before that was stored: it is not confirmed by a block that
// is gone.
func TestForkBetweenAnswerAndUpdate(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.until(p.ID, wallet.Included)
	w.chain.Mine(8)
	w.read()

	w.answered = func() {
		w.answered = nil
		w.fork(sim.Fork{Depth: 9, Fate: sim.DropOrphan})
	}

	w.now = w.now.Add(10 * time.Second)
	if _, err := w.outbox.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	if w.answered != nil {
		t.Fatal("nobody read the rows")
	}

	if got := w.get(p.ID); got.State != wallet.Broadcast || got.DueAt.After(w.now) {
		t.Errorf("out of its block it is %s, and looked at %s later", got.State, got.DueAt.Sub(w.now))
	}

	w.confirmed(p.ID)
}

func TestRevertedAtFinality(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("USDX", dollars(5))
	w.work()
	w.chain.Freeze(p.Order.Outputs[0].To, "USDX", true)

	got := w.until(p.ID, wallet.Included)
	if got.State == wallet.Failed {
		t.Fatal("failed before its block is final")
	}

	got = w.until(p.ID, wallet.Failed)
	if got.Failure != wallet.FailReverted || got.Fee.IsZero() {
		t.Errorf("failed as %+v", got)
	}
}

func TestFailuresBeforeTheSignature(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*harness, *wallet.Transaction)
		after   time.Duration
		want    string
	}{
		"stale": {
			func(w *harness, _ *wallet.Transaction) {
				w.chain.SetFee(1_000_000*sim.DefaultBaseFee, sim.DefaultPriority)
			},
			2 * time.Hour,
			wallet.FailStale,
		},
		"not payable": {
			func(w *harness, p *wallet.Transaction) {
				w.chain.Freeze(p.Order.Outputs[0].To, "SIM", true)
			},
			0,
			wallet.FailNotPayable,
		},
		"token that its issuer changed": {
			func(w *harness, _ *wallet.Transaction) {
				w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
					if m == sim.MethodBuild {
						return fault.New(fault.Stopped, "token_unsafe", "a foreign program runs with every transfer")
					}

					return nil
				})
			},
			0,
			wallet.FailTokenUnsafe,
		},
		"refused": {
			func(w *harness, _ *wallet.Transaction) {
				w.policy = func(chain.SignRequest) error { return chain.Refuse("limit") }
			},
			0,
			wallet.FailSignerRefused + "limit",
		},
		"unfunded": {
			func(w *harness, p *wallet.Transaction) {
				p.Order.Outputs[0].Amount = coin(1000)
			},
			10 * time.Minute,
			wallet.FailInsufficientFunds,
		},
		"unfunded top-up": {
			func(w *harness, p *wallet.Transaction) {
				p.Order.Outputs[0].Amount, p.Kind = coin(1000), wallet.TopUp
			},
			2 * time.Hour,
			wallet.FailStale,
		},
		"watch only": {
			func(w *harness, p *wallet.Transaction) {
				p.Order.From.Address = w.chain.NewAddress()
			},
			0,
			wallet.FailSignerRefused + "watch_only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			draft := wallet.Transaction{
				Owner:    owner,
				Network:  network,
				Kind:     wallet.Payout,
				ObjectID: "o",
				GiveUpAt: w.now.Add(2 * time.Hour),
				Order: chain.Order{
					From: w.master(),
					Outputs: []chain.Output{
						{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: coin(1)},
					},
					MaxFee: milli(10),
				},
			}
			c.prepare(w, &draft)
			p := w.enqueue(draft)
			w.work()

			if c.after > 0 {
				if got := w.get(p.ID); got.State != wallet.Queued {
					t.Fatalf("at once it is %s %s", got.State, got.Failure)
				}

				w.now = w.now.Add(c.after - time.Second)
				w.work()

				if got := w.get(p.ID); got.State != wallet.Queued {
					t.Fatalf("too early it is %s %s", got.State, got.Failure)
				}

				w.now = w.now.Add(time.Minute * 6)
				w.work()
			}

			got := w.get(p.ID)
			if got.State != wallet.Failed || got.Failure != c.want || len(got.Attempts) != 0 {
				t.Errorf("it is %s %q, want failed %q", got.State, got.Failure, c.want)
			}

			if w.chain.Calls(sim.MethodBroadcast) != 0 {
				t.Error("something was sent")
			}

			if _, ok, _ := w.store.Wallet(t.Context(), network, p.Order.From.Address); ok {
				t.Error("a nonce was taken")
			}
		})
	}
}

func TestSignerWithoutAnswerLeavesItQueued(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.policy = func(chain.SignRequest) error { return errors.New("the HSM is away: https://user:password@hsm") }
	p := w.payout("SIM", coin(1))
	w.work()

	if got := w.get(p.ID); got.State != wallet.Queued {
		t.Fatalf("it is %s", got.State)
	}

	w.policy = nil
	w.confirmed(p.ID)
}

func TestCancelBeforeAndAfterTheSignature(t *testing.T) {
	w := newHarness(t, sim.Config{})

	p := w.payout("SIM", coin(1))
	for range 2 {
		if err := w.cancel(p.ID); err != nil {
			t.Fatal(err)
		}
	}

	if got := w.get(p.ID); got.State != wallet.Failed || got.Failure != wallet.FailCanceled {
		t.Errorf("canceled: %+v", got)
	}

	q := w.payout("SIM", coin(2))
	w.work()

	if err := w.cancel(q.ID); !errors.Is(err, fault.State) || fault.Code(err) != "transaction_signed" {
		t.Errorf("canceling a signed one: %v", err)
	}

	w.confirmed(q.ID)
}

// A cancellation that commits while the transaction is being signed wins: the signature is thrown away.
func TestCancelWhileItIsSigned(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.policy = func(chain.SignRequest) error { return w.cancel(p.ID) }
	w.work()
	w.policy = nil
	w.wait(time.Minute)

	if got := w.get(
		p.ID,
	); got.State != wallet.Failed || got.Failure != wallet.FailCanceled ||
		w.chain.Calls(sim.MethodBroadcast) != 0 {
		t.Errorf("it is %+v after %d broadcasts", got, w.chain.Calls(sim.MethodBroadcast))
	}
}

// Pitfall 14. A process that stalls while it signs loses the wallet to another one, and its
// signature with it.
func TestOneOwnerPerWallet(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	other := w.boot("two")
	stalled := false
	w.policy = func(chain.SignRequest) error {
		if stalled {
			return nil
		}

		stalled = true

		if _, err := other.Step(t.Context(), network); err != nil { // held: nothing to do
			return err
		}

		if got := w.get(p.ID); got.State != wallet.Queued {
			t.Errorf("two processes worked on one wallet: %s", got.State)
		}

		err := w.outlast(other)
		if got := w.get(p.ID); got.State != wallet.Broadcast {
			t.Errorf("the other process made it %s", got.State)
		}

		return err
	}
	w.work()

	if got := w.confirmed(p.ID); len(got.Attempts) != 1 {
		t.Errorf("%d sets of bytes", len(got.Attempts))
	}
}

// The other process takes the wallet and finds its signer away: nothing is stored that the first
// one could stumble over. It has lost the wallet all the same.
func TestSignatureOfALostLeaseIsThrownAway(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	other := w.boot("two")
	asked := 0

	w.policy = func(chain.SignRequest) error {
		if asked++; asked > 1 {
			return errors.New("the HSM is away")
		}

		return w.outlast(other)
	}
	if _, err := w.outbox.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	if got := w.get(
		p.ID,
	); asked != 2 || got.State != wallet.Queued ||
		w.chain.Calls(sim.MethodBroadcast) != 0 {
		t.Fatalf(
			"after %d requests it is %s, %d broadcasts",
			asked, got.State, w.chain.Calls(sim.MethodBroadcast),
		)
	}

	w.policy = nil
	w.confirmed(p.ID)
}

// Bytes whose fee cap is too low for good are displaced, and the wallet goes on.
func TestStuckForGoodIsDisplaced(t *testing.T) {
	w := newHarness(t, sim.Config{})
	to := w.chain.NewAddress()
	p := w.payoutTo(to, "SIM", coin(1), chain.Units(3*sim.DefaultBaseFee).Mul(sim.GasNative))
	w.work()
	w.chain.SetFee(50*sim.DefaultBaseFee, sim.DefaultPriority)
	q := w.payout("SIM", coin(2))

	got := w.until(q.ID, wallet.Broadcast)
	for got.State != wallet.Confirmed {
		w.pass(5 * time.Minute)
		w.work()

		if got = w.get(q.ID); w.now.After(start.Add(24 * time.Hour)) {
			t.Fatalf("the wallet never went on: %+v, %+v", w.get(p.ID), got)
		}
	}

	stuck := w.until(p.ID, wallet.Failed)
	if stuck.Failure != wallet.FailConflict || !w.chain.Balance(to, "SIM").IsZero() {
		t.Errorf("displaced as %+v", stuck)
	}

	if w.now.Before(start.Add(6 * time.Hour)) {
		t.Error("it was displaced too early")
	}
}

// A cancel that fees outgrow, before or after it is signed, is not the end of its wallet.
func TestCancelFollowsTheFees(t *testing.T) {
	for _, since := range []wallet.State{wallet.Queued, wallet.Broadcast} {
		t.Run(string(since), func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			stuck := w.payoutTo(
				w.chain.NewAddress(), "SIM", coin(1), chain.Units(3*sim.DefaultBaseFee).Mul(sim.GasNative),
			)
			w.work()
			w.chain.SetFee(50*sim.DefaultBaseFee, sim.DefaultPriority)

			if since == wallet.Queued {
				w.policy = func(chain.SignRequest) error { return errors.New("the HSM is away") }
			}

			raised := false

			for w.get(stuck.ID).State != wallet.Failed {
				w.pass(5 * time.Minute)
				w.work()

				live, err := w.store.LiveTransactions(t.Context(), "simnet", w.master().Address)
				if err != nil {
					t.Fatal(err)
				}

				for _, cancel := range live {
					if cancel.Kind == wallet.Cancel && cancel.State == since && !raised {
						w.chain.SetFee(5000*sim.DefaultBaseFee, sim.DefaultPriority)

						w.policy, raised = nil, true
					}
				}

				if w.now.After(start.Add(72 * time.Hour)) {
					t.Fatalf("the wallet never went on (fees raised: %t): %+v", raised, live)
				}
			}

			if !raised {
				t.Error("no cancel was seen in that state")
			}
		})
	}
}

// Pitfall 17. A foreign transaction took a nonce, ours took the next one, and the foreign one went away.
func TestGapIsFilled(t *testing.T) {
	w := newHarness(t, sim.Config{})
	foreign := w.chain.CancelNonce(w.master().Address)
	w.chain.Mine(1)
	p := w.payout("SIM", coin(1))
	w.work()

	if got := w.get(p.ID); got.Nonce != 1 {
		t.Fatalf("took nonce %d", got.Nonce)
	}

	w.chain.Fork(sim.Fork{Depth: 1, Each: map[string]sim.OrphanFate{foreign: sim.DropOrphan}})
	w.confirmed(p.ID)
}

func TestExpiredBytesAreMadeAgainOnlyWhenDead(t *testing.T) {
	w := newHarness(t, sim.Config{ValidBlocks: 5})
	p := w.payout("SIM", coin(1))
	w.work()
	w.chain.Drop(w.get(p.ID).TxHash)
	w.chain.FailNext(sim.MethodBroadcast, sim.Unavailable(), 1000)

	for range 6 {
		w.now = w.now.Add(5 * time.Second)
		w.chain.MineEmpty(1)
		w.work()

		if got := w.get(p.ID); len(got.Attempts) != 1 {
			t.Fatalf("new bytes while the old ones may still be included: %+v", got)
		}
	}

	w.chain.MineEmpty(3)
	w.wait(10 * time.Second)

	if got := w.get(p.ID); len(got.Attempts) != 2 || got.State == wallet.Failed {
		t.Fatalf("after the proof that it is dead: %+v", got)
	}

	w.chain.MineEmpty(1) // so that others could be made
	w.wait(10 * time.Second)

	if got := w.get(p.ID); len(got.Attempts) != 2 {
		t.Fatalf("the first attempt is dead, the second is not, and there are %d", len(got.Attempts))
	}

	w.now = w.now.Add(2 * time.Hour)
	for range 20 {
		w.chain.MineEmpty(3)
		w.wait(5 * time.Minute)
	}

	if got := w.get(p.ID); got.State != wallet.Failed || got.Failure != wallet.FailExpired {
		t.Errorf("when its time is over it is %s %s", got.State, got.Failure)
	}
}

func TestReservationEndsWithTheBalanceThatShowsIt(t *testing.T) {
	w := newHarness(t, sim.Config{})
	native := w.asset("SIM").ID

	err := w.update(t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		return w.outbox.TrackTx(ctx, tx, owner, network, w.master())
	})
	if err == nil {
		err = w.outbox.RefreshBalances(t.Context(), network)
	}

	if err != nil {
		t.Fatal(err)
	}

	row := func() wallet.Balance {
		b, _, err := w.store.Balance(t.Context(), network, w.master().Address, native)
		if err != nil {
			t.Fatal(err)
		}

		return b
	}
	if b := row(); b.OnChain != coin(100) || b.Owner != owner {
		t.Fatalf("read as %+v", b)
	}

	reserve := func(object string, amount chain.Amount) error {
		return w.update(t.Context(), func(ctx context.Context, tx wallet.Tx) error {
			return w.outbox.ReserveTx(ctx, tx, owner, network, w.master().Address, native, object, amount)
		})
	}
	if err := reserve(
		"too much", coin(101),
	); !errors.Is(err, fault.State) ||
		fault.Code(err) != "insufficient_balance" {
		t.Fatalf("reserving too much: %v", err)
	}

	p := w.payout("SIM", coin(60))
	if err := reserve(p.ObjectID, coin(60).Add(milli(10))); err != nil {
		t.Fatal(err)
	}

	if err := reserve("another", coin(40)); !errors.Is(err, fault.State) {
		t.Fatalf("the money of a waiting payout was promised again: %v", err)
	}

	got := w.confirmed(p.ID)
	if b := row(); !b.Reserved.IsZero() || b.OnChain != coin(40).Sub(got.Fee) {
		t.Errorf("afterwards %+v", b)
	}

	w.chain.Fork(sim.Fork{Depth: 8, Fate: sim.DropOrphan})
	w.wait(2 * time.Minute)

	if b := row(); b.Reserved.Less(coin(60)) {
		t.Errorf("its block left the chain, and %s are reserved: %+v", b.Reserved, b)
	}

	w.confirmed(p.ID)

	if b := row(); !b.Reserved.IsZero() {
		t.Errorf("in the end %+v", b)
	}
}

// Pitfall 13. A process dies at every update and every call of its node.
func TestPayoutSurvivesCrashAtEveryStep(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			for at := 1; ; at++ {
				w := newHarness(t, sim.Config{})
				p, q := w.payout("SIM", coin(1)), w.payout("USDX", dollars(2))
				w.process.Arm(at, after)
				w.confirmed(p.ID)
				w.confirmed(q.ID)

				if w.processes == 1 {
					if at < 20 {
						t.Fatalf("only %d calls were counted", at)
					}

					return
				}

				if t.Failed() {
					t.Fatalf("killed at call %d", at)
				}
			}
		})
	}
}

// Architecture rule 4. A fork replaced the block, or one that its depth counts on, and was not read yet: the
// payout waits, as its depth is that of another chain.
func TestUnreadForkConfirmsNothing(t *testing.T) {
	for name, depth := range map[string]uint64{"its block": 3, "a block on top of it": 1} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{NoFinality: true})
			p := w.payout("SIM", coin(1))
			w.until(p.ID, wallet.Included)

			for need := w.chain.Network().Confirmations - 1; need > 0; need-- {
				w.chain.Mine(1)
			}

			w.read()
			w.chain.Fork(sim.Fork{Depth: depth, Fate: sim.DropOrphan})

			w.reader = func() {} // the follower stands still

			w.wait(10 * time.Minute)

			if got := w.get(p.ID); got.State != wallet.Included {
				t.Fatalf("by a chain that is gone it is %s", got.State)
			}

			w.reader = nil
			w.confirmed(p.ID)
		})
	}
}
