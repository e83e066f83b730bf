package engine

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A process signs only once its network is read up to the tip that it saw first, whatever the stored cursor says of the
// tip; blocks that come later do not matter.
func TestNetworkIsReadUpToTheFirstTip(t *testing.T) {
	network := sim.New(sim.Config{})
	db := memory.New()

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2000"}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}

	e, err := New(Config{
		Store:     db,
		Drivers:   []chain.Driver{network},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
	})
	if err != nil {
		t.Fatal(err)
	}

	read := func() bool {
		t.Helper()

		read, err := e.reading.isRead(t.Context(), "simnet")
		if err != nil {
			t.Fatal(err)
		}

		return read
	}
	at := func(height uint64) {
		t.Helper()

		err := db.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			c, _, err := tx.Cursor(ctx, "simnet")
			if err != nil {
				return err
			}

			ref := chain.Ref{Height: height, Hash: "h"}
			c = scan.Cursor{Network: "simnet", At: ref, Tip: ref, Version: c.Version}

			return tx.PutCursor(ctx, &c)
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	if !read() {
		t.Error("nothing runs, and single workers are held up")
	}

	defer e.reading.begin()()

	first := network.Mine(10).Height

	if read() {
		t.Error("a network without a cursor is read")
	}

	at(first - 1)

	if read() {
		t.Error("a block is missing")
	}

	network.Mine(10)
	at(first)

	if !read() {
		t.Error("it is read up to the first tip")
	}

	at(first - 5) // a fork

	if !read() {
		t.Error("what was read is forgotten")
	}
}
