package txmgr_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/store"
)

// setHeight moves a coin to another height; 0 takes it out of its block.
func (w *harness) setHeight(vout uint32, height uint64) {
	w.t.Helper()

	c := w.coins()[vout]
	c.Height = height

	if err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutCoin(ctx, &c)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// setStatus has nodes say the same of all bytes that were sent.
func (o *outputs) setStatus(state chain.TxState) {
	for _, hash := range o.sent {
		o.status[hash] = chain.TxStatus{State: state}
	}
}

// sweepCoins queues a sweep of all coins, which pays platform fees besides.
func (w *harness) sweepCoins(fees ...chain.Amount) wallet.Transaction {
	w.t.Helper()

	t := w.payout("SIM", coin(10))
	if err := w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		_, err := w.outbox.CancelTx(ctx, tx, t.ID)
		return err
	}); err != nil {
		w.t.Fatal(err)
	}

	order := t.Order
	for _, fee := range fees {
		to := chain.Output{To: "platform", AssetID: order.Outputs[0].AssetID, Amount: fee}
		order.Outputs = append([]chain.Output{to}, order.Outputs...)
	}

	for _, c := range w.coins() {
		order.Coins = append(order.Coins, c.Coin)
	}

	return w.enqueue(wallet.Transaction{
		Owner:    t.Owner,
		Network:  network,
		Kind:     wallet.Sweep,
		ObjectID: "sweep",
		Order:    order,
	})
}

// A fork takes one of two outputs away that a sweep spends. Once no node has had its bytes for CancelAfter, the other
// one is free again.
func TestSweepOfAGoneCoinIsGivenUp(t *testing.T) {
	w, driver := newOutputs(t, 2)
	driver.all = true
	s := w.sweepCoins()
	w.work()
	w.setHeight(1, 0)

	driver.setStatus(chain.TxPooled)
	w.wait(7 * time.Hour)

	if got := w.get(s.ID); got.State != wallet.Broadcast {
		t.Fatalf("while a node has its bytes it is %s %s", got.State, got.Failure)
	}

	driver.setStatus(chain.TxUnknown)
	w.wait(time.Minute)
	w.wait(5 * time.Hour)

	if got := w.get(s.ID); got.State != wallet.Broadcast {
		t.Fatalf("before CancelAfter it is %s %s", got.State, got.Failure)
	}

	w.wait(time.Hour)

	if got := w.get(s.ID); got.State != wallet.Failed || got.Failure != wallet.FailInsufficientFunds {
		t.Fatalf("after CancelAfter it is %s %s", got.State, got.Failure)
	}

	if got := w.coins()[0]; got.ReservedBy != "" {
		t.Errorf("the coin that is there is reserved by %q", got.ReservedBy)
	}

	if all := w.cancels(); len(all) != 0 {
		t.Errorf("it was displaced by %+v", all)
	}
}

// A fork brings the output back, and the sweep with it that was given up: a person says what it was.
func TestSweepThatWasGivenUpIsIncluded(t *testing.T) {
	for _, waited := range []time.Duration{0, 30 * time.Hour} {
		sweepIsBack(t, waited)
	}
}

// sweepIsBack gives a sweep up that had waited in the pool for some time, and has a block include it.
func sweepIsBack(t *testing.T, waited time.Duration) {
	t.Helper()

	w, driver := newOutputs(t, 2)
	driver.all, driver.estimate = true, coin(7) // more than it may cost
	s := w.sweepCoins()
	w.work()
	driver.setStatus(chain.TxPooled)
	w.wait(waited)
	w.setHeight(1, 0)
	driver.setStatus(chain.TxUnknown)
	w.wait(5 * time.Minute)
	w.wait(6 * time.Hour)

	hash := w.get(s.ID).Attempts[0].Signed.TxHash
	mined := block(20, "a", nil,
		chain.Spend{Outpoint: chain.Outpoint{TxHash: "c"}, By: hash},
		chain.Spend{Outpoint: chain.Outpoint{TxHash: "c", Vout: 1}, By: hash},
	)

	w.setHeight(1, 3)

	driver.status[hash] = chain.TxStatus{State: chain.TxIncluded, Block: mined.Ref}
	driver.blocks = map[uint64]chain.Block{20: mined}
	w.scripted(buried(mined, "a"))
	w.wait(2 * time.Hour)

	rows, err := w.store.UnrecordedOutgoing(t.Context(), network, w.master().Address, time.Time{})
	if err != nil || len(rows) == 0 || rows[0].TxHash != hash {
		t.Errorf("after %s in the pool, what is not on record is %+v, %v", waited, rows, err)
	}
}

// A sweep of coins that are all there is not displaced: what a cancel left of them would be no payment's. It may cost
// what the network asks for, up to half of its remainder.
func TestSweepOfCoinsIsNeverCanceled(t *testing.T) {
	for estimate, most := range map[uint64]uint64{3: 3, 7: 5} {
		w, driver := newOutputs(t, 2)
		driver.all, driver.estimate = true, coin(estimate)
		s := w.sweepCoins()
		w.work()
		driver.setStatus(chain.TxUnknown)
		w.wait(time.Minute)
		w.wait(8 * time.Hour)
		w.wait(8 * time.Hour)

		got := w.get(s.ID)
		if got.State != wallet.Broadcast || len(w.cancels()) != 0 {
			t.Errorf("it is %s %s, displaced by %+v", got.State, got.Failure, w.cancels())
		}

		if got.Order.MaxFee != coin(most) {
			t.Errorf("the network asks for %d coins, and it may cost %s", estimate, got.Order.MaxFee)
		}
	}
}

// What a sweep pays the platform bears no network fee: it costs at most half of the remainder, as it was worth when it
// was planned.
func TestSweepCostsAtMostHalfOfItsRemainder(t *testing.T) {
	w, driver := newOutputs(t, 2)
	driver.all, driver.estimate = true, coin(9)
	s := w.sweepCoins(coin(4))
	w.work()
	driver.setStatus(chain.TxUnknown)
	w.wait(time.Minute)
	w.wait(8 * time.Hour)

	if got := w.get(s.ID); got.Order.MaxFee != coin(5) {
		t.Errorf("of the remainder of 10 coins it may cost %s", got.Order.MaxFee)
	}
}

// What is raised after CancelAfter is not put off by one that pays a little more within the old maximum.
func TestSweepOfCoinsPaysWhatTheNetworkAsksFor(t *testing.T) {
	w, driver := newOutputs(t, 2)
	driver.all, driver.estimate, driver.least = true, coin(4), true
	s := w.sweepCoins()
	w.work()
	driver.setStatus(chain.TxUnknown)

	for range 20 {
		w.wait(30 * time.Minute)
	}

	if got := w.get(s.ID); got.Order.MaxFee != coin(4) {
		t.Errorf("after ten hours it may cost %s, in %d attempts", got.Order.MaxFee, len(got.Attempts))
	}
}

// A payout is replaced by bytes that spend the coin that is still there, so that at most one of both is included.
func TestPayoutOfAGoneCoinIsReplaced(t *testing.T) {
	w, driver := newOutputs(t, 2)
	driver.all = true
	p := w.payout("SIM", coin(6))
	w.work()
	w.setHeight(1, 0)
	driver.setStatus(chain.TxUnknown)
	w.wait(5 * time.Minute)

	got := w.get(p.ID)
	if len(got.Attempts) != 2 {
		t.Fatalf("it has %d attempts", len(got.Attempts))
	}

	if in := got.Attempts[1].Signed.Inputs; !slices.Equal(in, []chain.Outpoint{{TxHash: "c"}}) {
		t.Errorf("its replacement spends %+v", in)
	}
}

// Nothing displaces a payout whose coins are all gone: it waits for them, and its wallet is named.
func TestPayoutWithoutItsCoinsIsNamed(t *testing.T) {
	w, driver := newOutputs(t, 1)
	driver.all = true
	p := w.payout("SIM", coin(1))
	w.work()
	w.setHeight(0, 0)
	driver.setStatus(chain.TxUnknown)
	w.wait(time.Minute)
	w.wait(8 * time.Hour)

	if got := w.get(p.ID); got.State != wallet.Broadcast || len(got.Attempts) != 1 || len(w.cancels()) != 0 {
		t.Errorf("it is %s with %d attempts, displaced by %+v", got.State, len(got.Attempts), w.cancels())
	}

	stuck, err := w.outbox.StuckWallets(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}

	if len(stuck) != 1 || stuck[0].Address != string(w.master().Address) ||
		!strings.Contains(stuck[0].Reason, "the payout of "+p.ObjectID) {
		t.Errorf("named are %+v", stuck)
	}

	w.setHeight(0, 3) // and another process looked

	if stuck, err = w.outbox.StuckWallets(t.Context(), network); err != nil || len(stuck) != 0 {
		t.Errorf("once it is back, named are %+v, error %v", stuck, err)
	}
}
