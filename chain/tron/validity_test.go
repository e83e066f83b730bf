//go:build unix

package tron_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// A transaction refers to a solidified block: it is included though every later block is replaced. It runs out
// five minutes after the block that was the newest when it was built.
func TestTransactionOutlivesAFork(t *testing.T) {
	const lag = 4

	h := newHarness(t, testenv.TronOptions{SolidLag: lag})
	from, to := h.wallet(100), h.wallet(1).Address
	h.mine(2 * lag)

	signed := h.sign(h.order(from, h.native, to, 3_000_000))

	newest := h.latestBlock()
	if wait := signed.ValidTo.Sub(newest.Time); wait != 5*time.Minute {
		t.Errorf("the transaction runs out %s after the newest block", wait)
	}

	h.must(h.Fork(t.Context(), lag-1))

	if replaced, err := h.d.RefAt(t.Context(), newest.Height); err == nil && replaced.Hash == newest.Hash {
		t.Fatal("the fork replaced no block: this test proves nothing then")
	}

	if status := h.include(signed); status.Reverted {
		t.Errorf("after a fork the transaction is %+v", status)
	}

	if got := h.balance(to, h.native); got != chain.Units(4_000_000) {
		t.Errorf("the destination has %s sun after 1 and 3 TRX", got)
	}
}
