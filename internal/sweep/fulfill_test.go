package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// fulfill says that a transaction which is not on record brought an amount from a deposit to the master wallet,
// and released settlements by it.
func (w *harness) fulfill(
	from chain.Party,
	nonce uint64,
	symbol string,
	amount chain.Amount,
	ids ...string,
) error {
	w.t.Helper()

	return w.fulfillBy(from, nonce, chain.Amount{}, []chain.Transfer{{
		TxHash:  "taken",
		From:    from.Address,
		To:      w.master().Address,
		AssetID: w.asset(symbol).ID,
		Amount:  amount,
	}}, ids...)
}

// fulfillBy says that a transaction which is not on record moved transfers from a deposit for a network fee (native
// base units), and released settlements by it.
func (w *harness) fulfillBy(
	from chain.Party,
	nonce uint64,
	fee chain.Amount,
	transfers []chain.Transfer,
	ids ...string,
) error {
	block := chain.Ref{Height: 7, Hash: "taken", Time: w.now}

	return w.update(w.t.Context(), w.services, func(ctx context.Context, tx store.Tx) error {
		return w.sweeper.FulfillTx(ctx, tx, ids, w.master(), txmgr.Fulfillment{
			Network: network,
			Rows:    []wallet.Outgoing{{TxHash: "taken", Address: from.Address, Nonce: nonce, Block: block}},
			Status: chain.TxStatus{
				State:     chain.TxIncluded,
				Block:     block,
				Final:     true,
				Fee:       fee,
				Transfers: transfers,
			},
		})
	})
}

// A transaction of lost records swept what a release holds that waits for its next step, and what nobody releases yet:
// both are released by it, and that release ends.
func TestSweepOfLostRecordsTookWhatAReleaseAndOthersHold(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	first := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("the top-up is on its way", func() bool { return w.get(first.ID).TopUpTx != "" })
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodPlanSweep {
			return sim.Unavailable()
		}

		return nil
	})

	for range 20 {
		w.pass(5 * time.Second)
		w.work()
	}

	second := w.pay("p2", deposit, "USDX", dollars(300), 300)

	err := w.fulfill(deposit, 0, "USDX", dollars(600), first.ID, second.ID)
	if fault.Code(err) != "transaction_mismatch" {
		t.Fatalf("with another sum: %v", err)
	}

	if s := w.get(first.ID); s.Status != settlement.Releasing {
		t.Fatalf("after that the first is %s", s.Status)
	}

	if err := w.fulfill(deposit, 0, "USDX", dollars(700), first.ID, second.ID); err != nil {
		t.Fatal(err)
	}

	var net chain.Amount

	for _, id := range []string{first.ID, second.ID} {
		s := w.get(id)
		if s.Status != settlement.Released || s.SweepTx != "taken" {
			t.Fatalf("settlement %s is %s by %q", id, s.Status, s.SweepTx)
		}

		net = net.Add(*s.NetReleased)
	}

	w.check("released of both", net, dollars(700))

	if n := w.live(deposit); n != 0 {
		t.Errorf("%d releases are still under way", n)
	}
}

// While the bytes of a release's own sweep may be included, no other transaction is said to be it.
func TestReleaseWhoseOwnSweepIsSigned(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	s := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("its sweep is signed", func() bool { return w.get(s.ID).SweepTx != "" })

	own := w.get(s.ID).SweepTx

	err := w.fulfill(deposit, 9, "USDX", dollars(400), s.ID)
	if fault.Code(err) != "settlement_state" {
		t.Fatalf("with its own sweep signed: %v", err)
	}

	if got := w.until(s.ID, settlement.Released); got.SweepTx != own {
		t.Errorf("it was released by %s, want %s", got.SweepTx, own)
	}
}

// A transaction that brought less than half of what a settlement holds released something else: no release costs that
// much.
func TestSmallSweepIsNotThatOfALargeDeposit(t *testing.T) {
	w := newHarness(t, account.Settings{ManualRelease: true})
	deposit := w.deposit(1)
	large := w.pay("p1", deposit, "SIM", coin(1), 2000)
	small := w.pay("p2", deposit, "SIM", milli(100), 200)

	err := w.fulfill(deposit, 0, "SIM", milli(98), large.ID)
	if fault.Code(err) != "transaction_mismatch" {
		t.Fatalf("as the large one's: %v", err)
	}

	if err := w.fulfill(deposit, 0, "SIM", milli(98), small.ID); err != nil {
		t.Fatal(err)
	}

	if got := w.get(small.ID); got.Status != settlement.Released {
		t.Errorf("the small one is %s", got.Status)
	}
}

// A transaction of lost records that paid a fee which those had carried is the release of all that it took, however
// much of that the fee was.
func TestSweepOfLostRecordsPaidWhatTheyCarried(t *testing.T) {
	w := newHarness(t, account.Settings{ManualRelease: true})
	deposit := w.deposit(1)
	s := w.pay("p1", deposit, "SIM", milli(100), 200)
	to := func(address chain.Address, amount chain.Amount) chain.Transfer {
		return chain.Transfer{
			TxHash:  "taken",
			From:    deposit.Address,
			To:      address,
			AssetID: w.asset("SIM").ID,
			Amount:  amount,
		}
	}

	err := w.fulfillBy(deposit, 0, milli(1), []chain.Transfer{
		to(w.master().Address, milli(40)),
		to(w.fee, milli(58)),
	}, s.ID)
	if fault.Code(err) != "transaction_mismatch" {
		t.Fatalf("with something left: %v", err)
	}

	if err := w.fulfillBy(deposit, 0, milli(2), []chain.Transfer{
		to(w.master().Address, milli(40)),
		to(w.fee, milli(58)),
	}, s.ID); err != nil {
		t.Fatal(err)
	}

	got := w.get(s.ID)
	if got.Status != settlement.Released {
		t.Fatalf("it is %s", got.Status)
	}

	w.check("released", *got.NetReleased, milli(40))
	w.check("paid as fee", got.FeePaid, milli(58))
	w.check("of the network", got.NetworkFees, milli(2))
}
