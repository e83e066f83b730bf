package txmgr_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/store"
)

// register registers a wallet as of a height.
func (w *harness) register(party chain.Party, since uint64) {
	w.t.Helper()

	if err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := w.outbox.RegisterTx(ctx, tx, network, party); err != nil {
			return err
		}

		registered, _, err := tx.Wallet(ctx, network, party.Address)
		if err != nil {
			return err
		}

		registered.Since = since

		return tx.PutWallet(ctx, &registered)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// unrecorded returns the hashes of what is not on record of an address.
func (w *harness) unrecorded(of chain.Party) (hashes []string) {
	w.t.Helper()

	rows, err := w.store.UnrecordedOutgoing(w.t.Context(), network, of.Address, time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}

	for _, row := range rows {
		hashes = append(hashes, row.TxHash)
	}

	return hashes
}

// What a master wallet did before it was registered is not held against it. A fork may bring a transaction of lost
// records into a block that low: where it spends what signed bytes spend, it is none of those.
func TestWhatSignedBytesSpendIsNotFromBeforeTheWallet(t *testing.T) {
	w, _ := newOutputs(t, 2)
	p := w.payout("SIM", coin(1))
	w.work()

	if in := w.get(p.ID).Attempts[0].Signed.Inputs; len(in) != 1 || in[0] != (chain.Outpoint{TxHash: "c"}) {
		t.Fatalf("it spends %+v", in)
	}

	w.register(w.master(), 1000)
	w.scripted(buried(block(20, "a", nil,
		chain.Spend{Outpoint: chain.Outpoint{TxHash: "c"}, By: "lost"},
		chain.Spend{Outpoint: chain.Outpoint{TxHash: "c", Vout: 1}, By: "older"},
	), "a"))

	if got := w.unrecorded(w.master()); !slices.Equal(got, []string{"lost"}) {
		t.Errorf("what is not on record is %v", got)
	}
}

// Nobody but this library spends from a deposit address: there is no time before.
func TestDepositAddressHasNoTimeBefore(t *testing.T) {
	w, _ := newOutputs(t, 0)
	w.register(w.deposit(), 1000)

	if err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutCoin(ctx, &wallet.Coin{
			Network: network,
			Coin: chain.Coin{
				Outpoint: chain.Outpoint{TxHash: "d"},
				Owner:    w.deposit(),
				Amount:   coin(5),
				Height:   1,
			},
		})
	}); err != nil {
		t.Fatal(err)
	}

	w.scripted(buried(block(20, "a", nil, spends("lost", "d")...), "a"))

	if got := w.unrecorded(w.deposit()); !slices.Equal(got, []string{"lost"}) {
		t.Errorf("what is not on record is %v", got)
	}
}
