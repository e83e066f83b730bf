package txmgr_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// liar is a network with a node that says what a test wants.
type liar struct {
	spy
	// status changes what the node answers about a hash; nil: nothing.
	status func(chain.TxStatus) chain.TxStatus
	// deaf is set while broadcasts are lost.
	deaf bool
	// confirm is what the second node says of a block; nil: there is none.
	confirm error
	asked   int // how often the second node was
	// hides is the hash of a transaction that blocks leave out; empty: none.
	hides string
}

func (l *liar) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	blocks, err := l.spy.Blocks(ctx, from, to)
	for i := range blocks {
		blocks[i].Spent = slices.DeleteFunc(
			blocks[i].Spent,
			func(spend chain.Spend) bool { return spend.By == l.hides },
		)
	}

	return blocks, err
}

func (l *liar) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	status, err := l.spy.Status(ctx, signed)
	if l.status != nil {
		status = l.status(status)
	}

	return status, err
}

func (l *liar) Broadcast(ctx context.Context, signed chain.Signed) error {
	if l.deaf {
		return sim.Unavailable()
	}

	return l.spy.Broadcast(ctx, signed)
}

func (l *liar) AgreedBlock(_ context.Context, at chain.Ref, _ []string) (chain.Block, error) {
	l.asked++
	return chain.Block{Ref: at}, l.confirm
}

func newLiar(t *testing.T, config sim.Config) (*harness, *liar) {
	t.Helper()
	w := newHarness(t, config)
	l := &liar{spy: spy{w.chain, w}}
	w.driver = func() chain.Driver { return l }
	w.outbox = w.boot("liar")

	return w, l
}

// Pitfalls 38 and 39. What a node says about a hash decides nothing: blocks do.
func TestAnswersAboutAHashDecideNothing(t *testing.T) {
	for name, lie := range map[string]func(chain.TxStatus) chain.TxStatus{
		"it knows no such hash": func(chain.TxStatus) chain.TxStatus {
			return chain.TxStatus{State: chain.TxUnknown}
		},
		"it proves it dead": func(chain.TxStatus) chain.TxStatus {
			return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}
		},
		"it waits in the pool": func(chain.TxStatus) chain.TxStatus {
			return chain.TxStatus{State: chain.TxPooled}
		},
		"it is in another block": func(s chain.TxStatus) chain.TxStatus {
			s.Block.Hash += "x"
			return s
		},
		"it failed there": func(s chain.TxStatus) chain.TxStatus {
			s.Reverted = s.State == chain.TxIncluded
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := newLiar(t, sim.Config{})
			p := w.payout("SIM", coin(1))
			w.work()

			l.status = lie

			for range 6 {
				w.pass(13 * time.Second)
				w.work()

				if got := w.get(p.ID); got.State != wallet.Broadcast {
					t.Fatalf("it became %s %s", got.State, got.Failure)
				}
			}

			l.status = nil

			w.wait(time.Minute)

			if got := w.get(p.ID); got.State != wallet.Confirmed || len(got.Attempts) != 1 {
				t.Errorf("once the node answers it is %s after %d attempts", got.State, len(got.Attempts))
			}

			w.arrived(p)
		})
	}
}

// An answer that it is included, with no row, is provisional: the bytes are neither sent nor replaced.
func TestInclusionNeedsARow(t *testing.T) {
	w, _ := newLiar(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.work()
	w.chain.Mine(5)

	w.reader = func() {} // the follower stands still
	sent := w.chain.Calls(sim.MethodBroadcast)
	w.wait(10 * time.Minute)

	if got := w.get(p.ID); got.State != wallet.Broadcast || len(got.Attempts) != 1 ||
		w.chain.Calls(sim.MethodBroadcast) != sent {
		t.Fatalf(
			"it is %s with %d attempts, sent %d times",
			got.State, len(got.Attempts), w.chain.Calls(sim.MethodBroadcast),
		)
	}

	w.reader = nil
	w.wait(10 * time.Minute)

	if got := w.get(p.ID); got.State != wallet.Confirmed {
		t.Errorf("once its block was read it is %s", got.State)
	}
}

// Pitfall 39. An answer about the hash without its logs: the block has them.
func TestTransfersComeFromTheBlock(t *testing.T) {
	w, l := newLiar(t, sim.Config{})
	l.status = func(s chain.TxStatus) chain.TxStatus { s.Transfers = nil; return s }

	got := w.confirmed(w.payout("USDX", dollars(5)).ID)
	if len(got.Transfers) != 1 || got.Transfers[0].Amount != dollars(5) || got.Fee.IsZero() {
		t.Errorf("confirmed with %+v and a fee of %s", got.Transfers, got.Fee)
	}
}

// Where there are two nodes, what cannot be taken back waits until both have the block.
func TestOutcomeNeedsASecondNode(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w *harness) wallet.Transaction
		open wallet.State // while the nodes do not agree
		end  wallet.State
	}{
		"confirmed": {
			func(w *harness) wallet.Transaction { return w.payout("SIM", coin(1)) },
			wallet.Included,
			wallet.Confirmed,
		},
		"reverted": {
			func(w *harness) wallet.Transaction {
				p := w.payout("USDX", dollars(1))
				w.work()
				w.chain.Freeze(p.Order.Outputs[0].To, "USDX", true)

				return p
			},
			wallet.Included,
			wallet.Failed,
		},
		"conflict": {
			func(w *harness) wallet.Transaction {
				p := w.payout("SIM", coin(1))
				w.work()
				w.chain.Replace(w.get(p.ID).TxHash)

				return p
			},
			wallet.Broadcast,
			wallet.Failed,
		},
	} {
		for why, refused := range map[string]error{
			"another block":  fault.New(fault.NotFound, "block_unknown", "another block is there"),
			"no second node": sim.Unavailable(),
		} {
			t.Run(name+", "+why, func(t *testing.T) {
				w, l := newLiar(t, sim.Config{})
				l.confirm = refused
				p := c.make(w)
				w.until(p.ID, c.open)

				for range 20 {
					w.pass(5 * time.Second)
					w.work()
				}

				if got := w.get(p.ID); got.State != c.open || l.asked == 0 {
					t.Fatalf("the nodes do not agree, and it is %s", got.State)
				}

				l.confirm = nil

				w.until(p.ID, c.end)
			})
		}
	}
}

// A conflict names the transaction that won, and whether it was ours.
func TestConflictNamesItsTransaction(t *testing.T) {
	t.Run("somebody else's", func(t *testing.T) {
		w := newHarness(t, sim.Config{})
		p := w.payout("SIM", coin(1))
		w.work()
		thief := w.chain.Replace(w.get(p.ID).TxHash)

		got := w.until(p.ID, wallet.Failed)
		if want := (wallet.Conflict{TxHash: thief}); got.Failure != wallet.FailConflict ||
			got.Conflict != want {
			t.Errorf("failed as %s against %+v, want %+v", got.Failure, got.Conflict, want)
		}
	})
	t.Run("ours", func(t *testing.T) {
		w := newHarness(t, sim.Config{})
		p := w.payoutTo(
			w.chain.NewAddress(), "SIM", coin(1), chain.Units(3*sim.DefaultBaseFee).Mul(sim.GasNative),
		)
		w.work()
		w.chain.SetFee(50*sim.DefaultBaseFee, sim.DefaultPriority)

		for range 100 {
			w.pass(5 * time.Minute)
			w.work()
		}

		cancels := w.cancels()
		if len(cancels) != 1 {
			t.Fatalf("%d cancels", len(cancels))
		}

		got := w.until(p.ID, wallet.Failed)
		if want := (wallet.Conflict{TxHash: cancels[0].TxHash, Own: true}); got.Conflict != want {
			t.Errorf("failed against %+v, want %+v", got.Conflict, want)
		}
	})
}

// Where no hash binds what a block holds, a node may leave a transaction out of it: bytes whose validity is over are
// not dead while a node shows them, and are not made again.
func TestBytesThatANodeShowsHaveNotExpired(t *testing.T) {
	w, l := newLiar(t, sim.Config{ValidBlocks: 5})
	w.startFollower(l)

	p := w.payout("SIM", coin(1))
	w.work()

	l.hides = w.get(p.ID).TxHash

	for range 30 {
		w.pass(13 * time.Second)
		w.work()
	}

	if got := w.get(p.ID); len(got.Attempts) != 1 || got.State == wallet.Failed {
		t.Fatalf("it was included, and is %s %s after %d attempts", got.State, got.Failure, len(got.Attempts))
	}
}

// Pitfall 61. Bytes that expire within the replacement time leave their nonce unused: a cancel takes it at
// once, and the wallet goes on.
func TestNonceThatIsGivenUpIsFilled(t *testing.T) {
	w, l := newLiar(t, sim.Config{ValidBlocks: 5})
	p := w.payout("SIM", coin(1))
	l.deaf = true

	w.until(p.ID, wallet.Failed)

	if got := w.get(p.ID); got.Failure != wallet.FailExpired {
		t.Fatalf("failed as %s", got.Failure)
	}

	cancels := w.cancels()
	if len(cancels) != 1 || cancels[0].Order.Nonce != 0 || cancels[0].ObjectID != p.ID {
		t.Fatalf("its nonce is filled by %+v", cancels)
	}

	l.deaf = false
	q := w.payout("SIM", coin(2))
	began := w.now
	w.confirmed(q.ID)

	if took := w.now.Sub(began); took > 3*time.Minute {
		t.Errorf("the next payout took %s", took)
	}

	if got, cancel := w.get(p.ID), w.cancels()[0]; got.Fee != cancel.Fee || cancel.Fee.IsZero() {
		t.Errorf("the cancel cost %s, its payout shows %s", cancel.Fee, got.Fee)
	}
}

// Pitfall 61, where a process ended between giving up and filling, or another engine left the hole.
func TestHoleIsFilledBeforeTheNextPayout(t *testing.T) {
	w, _ := newLiar(t, sim.Config{ValidBlocks: 5})

	if err := w.update(t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		return tx.PutWallet(ctx, &wallet.Wallet{Network: network, Party: w.master(), NextNonce: 2})
	}); err != nil {
		t.Fatal(err)
	}

	p := w.payout("SIM", coin(2))
	began := w.now
	w.work()

	if n := len(w.cancels()); n != 2 {
		t.Fatalf("%d cancels at once", n)
	}

	if got := w.confirmed(p.ID); got.Nonce != 2 || w.now.Sub(began) > 3*time.Minute {
		t.Errorf("nonce %d was confirmed after %s", got.Nonce, w.now.Sub(began))
	}

	if n := len(w.cancels()); n != 2 {
		t.Errorf("%d cancels for two free nonces", n)
	}
}

// Pitfall 61. A wallet whose lowest nonce is in no block for long is named.
func TestWalletThatDoesNotMoveIsNamed(t *testing.T) {
	w, l := newLiar(t, sim.Config{})
	l.deaf = true
	p := w.payout("SIM", coin(1))
	w.work()
	w.payout("SIM", coin(2))

	for _, c := range []struct {
		after time.Duration
		stuck int
	}{{8 * time.Minute, 0}, {2 * time.Minute, 1}} {
		w.wait(c.after)

		got, err := w.outbox.StuckWallets(t.Context(), network)
		if err != nil || len(got) != c.stuck {
			t.Fatalf("after %s more: %+v %v", c.after, got, err)
		}

		for _, s := range got {
			if s.Address != string(w.master().Address) || s.AccountID != owner.AccountID ||
				s.Network != network ||
				!s.StuckSince.Equal(w.get(p.ID).Attempts[0].SignedAt) ||
				s.Reason == "" {
				t.Errorf("named as %+v", s)
			}
		}
	}

	l.deaf = false

	w.confirmed(p.ID)

	if got, err := w.outbox.StuckWallets(t.Context(), network); err != nil || len(got) != 0 {
		t.Errorf("it moves, and is named: %+v %v", got, err)
	}
}

// While no node shows a transaction in the block that holds it, its outcome waits, and Health says why.
func TestOutcomeThatWaitsIsNamed(t *testing.T) {
	w, l := newLiar(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.work()

	l.status = func(chain.TxStatus) chain.TxStatus { return chain.TxStatus{State: chain.TxUnknown} }

	w.chain.Mine(6)
	w.wait(8 * time.Minute)

	if got, err := w.outbox.StuckWallets(t.Context(), network); err != nil || len(got) != 0 {
		t.Fatalf("after 8 minutes: %+v %v", got, err)
	}

	w.wait(2 * time.Minute)

	got, err := w.outbox.StuckWallets(t.Context(), network)
	if err != nil || len(got) != 1 || got[0].Address != string(w.master().Address) ||
		!strings.HasPrefix(got[0].Reason, "block ") {
		t.Fatalf("named as %+v %v", got, err)
	}

	l.status = nil

	w.confirmed(p.ID)

	if got, err := w.outbox.StuckWallets(t.Context(), network); err != nil || len(got) != 0 {
		t.Errorf("it has its outcome, and is named: %+v %v", got, err)
	}
}

// The cancel of a nonce is young each time that it is signed anew, but the wallet has stood still for long.
func TestStuckWalletIsAsOldAsItsNonce(t *testing.T) {
	w, l := newLiar(t, sim.Config{ValidBlocks: 5})
	p := w.payout("SIM", coin(1))
	l.deaf = true

	w.until(p.ID, wallet.Failed)

	since := w.get(p.ID).Attempts[0].SignedAt
	for w.now.Sub(since) < 10*time.Minute {
		w.pass(5 * time.Second)
		w.work()
	}

	got, err := w.outbox.StuckWallets(t.Context(), network)
	if err != nil || len(got) != 1 || !got[0].StuckSince.Equal(since) {
		t.Errorf("named as %+v %v, want since %s", got, err, since)
	}
}

// That bytes are dead cannot be taken back: it waits for the network's own finality where that is known.
func TestExclusionWaitsForFinality(t *testing.T) {
	w := newHarness(t, sim.Config{FinalDepth: 6})
	p := w.payout("SIM", coin(1))
	w.work()
	w.chain.Replace(w.get(p.ID).TxHash)
	w.chain.Mine(6) // five on top of it
	w.wait(time.Minute)

	if got := w.get(p.ID); got.State != wallet.Broadcast {
		t.Fatalf("five blocks deep it is %s %s", got.State, got.Failure)
	}

	w.chain.Mine(1)
	w.wait(time.Minute)

	if got := w.get(p.ID); got.Failure != wallet.FailConflict {
		t.Errorf("at finality it is %s %s", got.State, got.Failure)
	}
}

// A fork is taken in between the reading of the thief's row and the failure that it proves.
func TestForkTakesTheProofAway(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.work()
	thief := w.chain.Replace(w.get(p.ID).TxHash)
	w.chain.Mine(3)
	w.read()

	signed := w.get(p.ID).Attempts[0].Signed
	w.answered = func() {
		w.answered = nil
		w.afterKeys = func() {
			w.afterKeys = nil
			w.fork(sim.Fork{Depth: 3, Each: map[string]sim.OrphanFate{thief: sim.DropOrphan}})
		}
	}

	w.now = w.now.Add(time.Minute)
	if _, err := w.outbox.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	if got := w.get(p.ID); got.State == wallet.Failed || w.afterKeys != nil {
		t.Fatalf("failed by a row that is gone: %+v", got)
	}

	if err := w.chain.Broadcast(t.Context(), signed); err != nil {
		t.Fatal(err)
	}

	w.confirmed(p.ID)
}
