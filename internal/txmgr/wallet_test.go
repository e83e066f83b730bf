package txmgr

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

func TestNextNonce(t *testing.T) {
	for _, c := range []struct {
		name                  string
		signed, counted, want uint64
	}{
		{"a new wallet", 0, 0, 0},
		{"ours wait", 5, 3, 5},
		{"somebody else sent", 3, 5, 5},
		{"all are included", 5, 5, 5},
		{"a node that lags", 5, 1, 5},
	} {
		w := wallet.Wallet{NextNonce: c.signed}
		if got := nextNonce(w, c.counted); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}

		advanceNonce(&w, c.want)

		if w.NextNonce != c.want+1 {
			t.Errorf("%s: the counter is %d after %d was signed", c.name, w.NextNonce, c.want)
		}

		advanceNonce(&w, 0)

		if w.NextNonce != c.want+1 {
			t.Errorf("%s: the counter fell to %d", c.name, w.NextNonce)
		}
	}
}

func waitingAt(id string, nonce uint64, state wallet.State) wallet.Transaction {
	return wallet.Transaction{
		ID:       id,
		State:    state,
		Nonce:    nonce,
		Attempts: []wallet.Attempt{attemptOf(id, nonce)},
	}
}

// Pitfall 17.
func TestGap(t *testing.T) {
	cancel := wallet.Transaction{
		ID:    "c",
		Kind:  wallet.Cancel,
		State: wallet.Queued,
		Order: chain.Order{Nonce: 3},
	}
	for _, c := range []struct {
		name string
		next uint64
		live []wallet.Transaction
		free []uint64
	}{
		{"a new wallet", 0, nil, nil},
		{"nothing waits", 3, nil, []uint64{2, 1, 0}},
		{"only unsigned ones wait", 2, []wallet.Transaction{{State: wallet.Queued}}, []uint64{1, 0}},
		{
			"all are ours",
			2,
			[]wallet.Transaction{waitingAt("a", 0, wallet.Included), waitingAt("b", 1, wallet.Signed)},
			nil,
		},
		{"one below", 5, []wallet.Transaction{waitingAt("b", 4, wallet.Signed)}, []uint64{3, 2, 1, 0}},
		{
			"it is being filled",
			5,
			[]wallet.Transaction{waitingAt("b", 4, wallet.Signed), cancel},
			[]uint64{2, 1, 0},
		},
	} {
		if free := freeNonces(c.next, c.live); !slices.Equal(free, c.free) {
			t.Errorf("%s: free %v, want %v", c.name, free, c.free)
		}
	}

	if free := freeNonces(1000, nil); len(free) != maxGapDepth || free[0] != 999 {
		t.Errorf("%d nonces are looked at", len(free))
	}
}

func TestOnlyTheLowestNonceIsStuckByItself(t *testing.T) {
	a, b := waitingAt("a", 3, wallet.Broadcast), waitingAt("b", 4, wallet.Broadcast)
	if live := []wallet.Transaction{a, b}; !lowestNonce(a, live) || lowestNonce(b, live) {
		t.Error("of two that wait, the one with the lower nonce is foremost")
	}

	a.State = wallet.Included
	if !lowestNonce(b, []wallet.Transaction{a, b}) {
		t.Error("one that is in a block holds nobody up")
	}
}

func TestReplacementSharesACoinWithAll(t *testing.T) {
	one, two, three := chain.Outpoint{
		TxHash: "x",
	}, chain.Outpoint{
		TxHash: "x",
		Vout:   1,
	}, chain.Outpoint{
		TxHash: "y",
	}

	attempts := []wallet.Attempt{
		{Signed: chain.Signed{Inputs: []chain.Outpoint{one, two}}},
		{Signed: chain.Signed{Inputs: []chain.Outpoint{two, three}}},
	}
	if !sharesCoin(attempts, []chain.Outpoint{two}) {
		t.Error("an output that all spend was not found")
	}

	for _, next := range [][]chain.Outpoint{nil, {one}, {three}, {one, three}} {
		if sharesCoin(attempts, next) {
			t.Errorf("%v would let two attempts be included", next)
		}
	}
}
