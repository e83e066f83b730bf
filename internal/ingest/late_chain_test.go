package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// A token payment whose balances cannot be read waits, however deep it is, and confirms with what arrived.
func TestTokenPaymentWaitsUntilItIsMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		fee  int
		want chain.Amount
	}{
		"no fee":         {0, dollars(200)},
		"a fee of 1 %":   {100, dollars(198)},
		"a fee of 100 %": {10_000, chain.Amount{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: c.fee, Log: sim.LogGross})
			d := w.deposit()
			w.chain.Pay(d.Address, "USDX", dollars(100))
			w.chain.Pay(d.Address, "USDX", dollars(100))
			w.set(&w.failing, true)
			w.mine(10)

			for _, p := range w.payments(d.ID) {
				if p.Status != invoice.Detected || p.Amount != dollars(100) {
					t.Errorf("unmeasured, a payment is %s with %s", p.Status, p.Amount)
				}
			}

			w.wantSum(d.ID, chain.Amount{}, 2)
			w.set(&w.failing, false)
			w.pass(time.Minute)
			w.mine(4)
			w.wantSum(d.ID, c.want, 0)
		})
	}
}

// A fork moves an unmeasured payment: it waits for the balances of its new block.
func TestUnmeasuredPaymentMovesWithItsBlock(t *testing.T) {
	w := newHarness(t, sim.Config{NoFinality: true})
	w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
	w.mine(8)
	d := w.deposit()
	w.chain.Pay(d.Address, "USDX", dollars(100))
	w.set(&w.failing, true)
	w.mine(2)
	w.fork(3)
	w.mine(5)
	w.wantSum(d.ID, chain.Amount{}, 1)

	w.set(&w.failing, false)
	w.pass(time.Minute)
	w.mine(4)
	w.wantSum(d.ID, dollars(99), 0)
}

// Two payments to an address wait to be measured: each confirms with what arrived by it, and not with what the other
// lacks, so that a fork that measures the later one again leaves their sum right.
func TestUnmeasuredPaymentsShareNoFee(t *testing.T) {
	for name, c := range map[string]struct {
		fee   int           // of the first, in basis points; that of the second is 1 %
		apart time.Duration // the longer a row waits, the later it is tried again
		want  []chain.Amount
	}{
		"the token took no fee before": {0, 0, []chain.Amount{dollars(100), dollars(99)}},
		"the later one is tried first": {100, 5 * time.Minute, []chain.Amount{dollars(99), dollars(99)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{NoFinality: true})
			d := w.deposit()
			w.set(&w.failing, true)
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: c.fee, Log: sim.LogGross})
			w.chain.Pay(d.Address, "USDX", dollars(100))
			w.mine(6)
			w.idle(c.apart)
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
			w.chain.Pay(d.Address, "USDX", dollars(100))
			w.mine(6)
			w.wantSum(d.ID, chain.Amount{}, 2)

			w.set(&w.failing, false)
			w.idle(20 * time.Second)
			w.mine(4)
			w.wantAmounts(d.ID, c.want...)

			w.fork(10)
			w.mine(12)
			w.wantAmounts(d.ID, c.want...)
		})
	}
}

// A fork moves an unmeasured payment while its row is tried again: the row is not done, and the payment waits for the
// balances of its new block.
func TestForkMovesAPaymentWhileItsRowIsTriedAgain(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("forked after it was prepared: ", late), func(t *testing.T) {
			w := newHarness(t, sim.Config{NoFinality: true})
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
			w.mine(8)
			d := w.deposit()
			w.chain.Pay(d.Address, "USDX", dollars(100))
			w.set(&w.failing, true)
			w.mine(2)

			engine := internal.Of(w.engine)
			rows, err := w.store.Retries(t.Context(), network, w.clock().AddDate(1, 0, 0), 10)
			w.must(err)

			if !late {
				w.fork(3)
			}

			w.set(&w.failing, false)

			p, err := engine.Ingester.PrepareRetry(t.Context(), rows[0])
			if late {
				w.must(err)
			} else if fault.Code(err) != "block_unknown" {
				t.Errorf("a row whose block is gone is prepared with %v", err)
			}

			w.set(&w.failing, true)

			if late {
				w.fork(3)

				err = engine.Update(t.Context(), func(ctx context.Context, tx internal.Tx) error {
					return engine.Ingester.RetryTx(ctx, tx, p)
				})
				if !errors.Is(err, fault.Conflict) {
					t.Errorf("a row that was moved is done with %v", err)
				}
			}

			w.mine(6)
			w.wantSum(d.ID, chain.Amount{}, 1)

			w.set(&w.failing, false)
			w.pass(time.Minute)
			w.mine(4)
			w.wantSum(d.ID, dollars(99), 0)
		})
	}
}

// A node that has another block where a payment waits to be measured takes nothing from it: the follower decides what
// left the chain.
func TestNodeOnAnotherBranchOrphansNothingThatWaits(t *testing.T) {
	w := newHarness(t, sim.Config{NoFinality: true})
	w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
	w.mine(8)
	d := w.deposit()
	w.chain.Pay(d.Address, "USDX", dollars(100))
	w.set(&w.failing, true)
	w.mine(2)

	engine := internal.Of(w.engine)
	rows, err := w.store.Retries(t.Context(), network, w.clock().AddDate(1, 0, 0), 10)
	w.must(err)
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.Reinclude}) // nobody follows it

	p, err := engine.Ingester.PrepareRetry(t.Context(), rows[0])
	if err == nil {
		err = engine.Update(t.Context(), func(ctx context.Context, tx internal.Tx) error {
			return engine.Ingester.RetryTx(ctx, tx, p)
		})
	}

	if fault.Code(err) != "block_unknown" {
		t.Errorf("the row is tried again with %v", err)
	}

	w.wantSum(d.ID, chain.Amount{}, 1)
	w.work()
	w.set(&w.failing, false)
	w.pass(time.Minute)
	w.mine(8)
	w.wantSum(d.ID, dollars(99), 0)

	rows, err = w.store.Retries(t.Context(), network, w.clock().AddDate(1, 0, 0), 10)
	if err != nil || len(rows) > 0 {
		t.Errorf("%d rows are left, %v", len(rows), err)
	}
}

// While a node answers for its newest balances alone, two payments to an address that it could not measure wait for
// another answer, until no node may be expected to have the balances of their blocks: then their sum is right.
func TestUnmeasuredPaymentsWaitForTheBalancesOfTheirBlocks(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
	d, alone := w.deposit(), w.deposit()
	w.set(&w.failing, true)
	w.chain.Pay(d.Address, "USDX", dollars(100))
	w.chain.Pay(alone.Address, "USDX", dollars(100))
	w.mine(6)
	w.chain.Pay(d.Address, "USDX", dollars(200))
	w.mine(10)

	w.set(&w.recent, true)
	w.set(&w.failing, false)
	w.pass(time.Minute)
	w.mine(50)
	w.wantSum(alone.ID, dollars(99), 0)
	w.wantSum(d.ID, chain.Amount{}, 2)

	w.mine(90)
	w.wantSum(d.ID, dollars(297), 0)
}

// A foreign transaction took some of what is at an address before a later payment could be measured: that is none of
// what the payment lacks.
func TestUnmeasuredPaymentAfterAForeignTransactionTookSome(t *testing.T) {
	w := newHarness(t, sim.Config{})
	d, thief := w.deposit(), w.chain.NewAddress()
	usdx, _ := w.network.Asset("USDX")

	w.chain.Pay(d.Address, "USDX", dollars(100))
	w.mine(10)
	w.set(&w.failing, true)
	w.chain.Pay(d.Address, "USDX", dollars(50))
	w.mine(2)

	hash := w.chain.TransferFrom(d.Address, thief, "USDX", dollars(30))
	w.mine(10)
	w.wantSum(d.ID, dollars(100), 1)
	w.must(w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutOutgoing(ctx, &wallet.Outgoing{
			Network:      network,
			Key:          hash,
			Address:      d.Address,
			TxHash:       hash,
			Block:        chain.Ref{Height: 1, Hash: "b"},
			Unrecorded:   true,
			Acknowledged: wallet.Foreign,
			Transfers: []chain.Transfer{
				{TxHash: hash, From: d.Address, To: thief, AssetID: usdx.ID, Amount: dollars(30)},
			},
		})
	}))

	w.set(&w.recent, true)
	w.set(&w.failing, false)
	w.pass(time.Minute)
	w.mine(4)
	w.wantSum(d.ID, dollars(150), 0)
}

// wantAmounts checks the amounts of the payments of an address, which are confirmed, oldest first.
func (w *harness) wantAmounts(of string, want ...chain.Amount) {
	w.t.Helper()

	var got []chain.Amount

	for _, p := range w.payments(of) {
		if p.Status == invoice.Confirmed {
			got = append(got, p.Amount)
		}
	}

	if !slices.Equal(got, want) {
		w.t.Errorf("payments of %s are confirmed, want %s", got, want)
	}
}

// wantSum checks the sum of the confirmed payments of an address, and how many wait.
func (w *harness) wantSum(of string, sum chain.Amount, waiting int) {
	w.t.Helper()

	var confirmed chain.Amount

	for _, p := range w.payments(of) {
		switch p.Status {
		case invoice.Confirmed:
			confirmed = confirmed.Add(p.Amount)
		case invoice.Detected:
			waiting--
		default:
		}
	}

	if confirmed != sum || waiting != 0 {
		w.t.Errorf("%s confirmed, want %s; %d more should wait", confirmed, sum, waiting)
	}
}

// The follower has not read the branch that a hinted transaction is in: its blocks do not count yet.
func TestHintOnAnUnreadBranchIsProvisional(t *testing.T) {
	w := newHarness(t, sim.Config{NoFinality: true})
	w.set(&w.noPool, true)
	w.mine(8)

	inv := w.sell("USDX", dollars(100))
	hash := w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.chain.Mine(1)
	w.chain.Fork(sim.Fork{Depth: 7, Fate: sim.Reinclude})
	w.hint(inv, hash)

	if p := w.only(inv.ID); p.Status != invoice.Detected || !p.Block.IsZero() {
		t.Errorf("on a branch that was not read it is %s in block %d", p.Status, p.Block.Height)
	}

	w.mine(4)
	w.want(inv, invoice.Paid, dollars(100), chain.Amount{})
}

// Health names a payment that waits for its balance to be read, until it was.
func TestHealthNamesWhatIsUnmeasured(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv := w.sell("USDX", dollars(5))
	hash := w.chain.Pay(addressOf(inv), "USDX", dollars(5))
	w.chain.FailNext(sim.MethodBalances, sim.Unavailable(), 1)
	w.mine(1)

	unread := func() []health.Unread {
		report, err := w.engine.Health(t.Context())
		w.must(err)

		return report.Networks[0].Follower.Unread
	}

	got := unread()
	if len(got) != 1 || got[0].TxHash != hash || got[0].Address != string(addressOf(inv)) ||
		!strings.Contains(got[0].Error, "balance") || got[0].Since.IsZero() {
		t.Fatalf("health names %+v", got)
	}

	w.pass(2 * time.Minute)
	w.mine(5)
	w.want(inv, invoice.Paid, dollars(5), chain.Amount{})

	if got := unread(); len(got) != 0 {
		t.Errorf("after the payment was measured health names %+v", got)
	}
}
