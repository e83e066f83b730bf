package txmgr_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/store"
)

// What a master wallet did before it was registered is not held against it. A fork may bring a transaction of lost
// records into a block that low: where it spends what signed bytes spend, it is none of those.
func TestWhatSignedBytesSpendIsNotFromBeforeTheWallet(t *testing.T) {
	w, _ := newOutputs(t, 2)
	p := w.payout("SIM", coin(1))
	w.work()

	if in := w.get(p.ID).Attempts[0].Signed.Inputs; len(in) != 1 || in[0] != (chain.Outpoint{TxHash: "c"}) {
		t.Fatalf("it spends %+v", in)
	}

	if err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := w.outbox.RegisterTx(ctx, tx, network, w.master()); err != nil {
			return err
		}

		registered, _, err := tx.Wallet(ctx, network, w.master().Address)
		if err != nil {
			return err
		}

		registered.Since = 1000

		return tx.PutWallet(ctx, &registered)
	}); err != nil {
		t.Fatal(err)
	}

	w.scripted(buried(block(20, "a", nil,
		chain.Spend{Outpoint: chain.Outpoint{TxHash: "c"}, By: "lost"},
		chain.Spend{Outpoint: chain.Outpoint{TxHash: "c", Vout: 1}, By: "older"},
	), "a"))

	rows, err := w.store.UnrecordedOutgoing(t.Context(), network, w.master().Address, time.Time{})
	if err != nil || len(rows) != 1 || rows[0].TxHash != "lost" {
		t.Errorf("what is not on record is %+v, %v", rows, err)
	}
}
