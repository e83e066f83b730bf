package walletstate

import (
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

func TestReservations(t *testing.T) {
	n := chain.Units
	b := wallet.Balance{}
	available := func(want uint64) {
		t.Helper()

		if b.Available() != n(want) || b.Reserved != total(b.Reservations) {
			t.Fatalf("available %s (reserved %s of %s), want %d", b.Available(), b.Reserved, b.OnChain, want)
		}
	}

	if err := Reserve(&b,
		"a", n(1),
	); !errors.Is(err, fault.State) ||
		fault.Code(err) != "insufficient_balance" {
		t.Fatalf("an empty wallet promised something: %v", err)
	}

	UpdateBalance(&b, chain.Ref{Height: 10, Hash: "h"}, n(100))

	for _, r := range []struct {
		object string
		amount uint64
	}{{"a", 60}, {"b", 40}} {
		if err := Reserve(&b, r.object, n(r.amount)); err != nil {
			t.Fatal(err)
		}
	}

	available(0)

	if err := Reserve(&b, "c", n(1)); !errors.Is(err, fault.State) {
		t.Fatalf("more than there is was promised: %v", err)
	}

	if err := Reserve(&b, "a", n(60)); err != nil {
		t.Fatalf("the same promise again: %v", err)
	}

	if err := Reserve(&b, "a", n(50)); err != nil {
		t.Fatal(err)
	}

	available(10)

	Debit(&b, "a", 12, n(50))
	UpdateBalance(&b, chain.Ref{Height: 11, Hash: "h"}, n(100))
	available(10) // the block does not show it yet
	UpdateBalance(&b, chain.Ref{Height: 12, Hash: "h"}, n(50))
	available(10) // spent and no longer promised

	if UpdateBalance(&b, chain.Ref{Height: 11, Hash: "h"}, n(100)) {
		t.Error("a node that lags brought spent money back")
	}

	available(10)

	Debit(&b, "a", 0, n(50)) // its block left the chain: it is on its way again
	UpdateBalance(&b, chain.Ref{Height: 13, Hash: "h"}, n(100))
	available(10)
	Debit(&b, "a", 14, n(50))
	Debit(&b, "a", 0, n(50)) // taken back before it was read
	UpdateBalance(&b, chain.Ref{Height: 15, Hash: "h"}, n(100))
	available(10)

	Unreserve(&b, "b")
	available(10) // until the next reading
	UpdateBalance(&b, chain.Ref{Height: 16, Hash: "h"}, n(100))
	available(50)

	if err := Reserve(&b, "a", chain.Amount{}); err != nil || len(b.Reservations) != 0 {
		t.Errorf("a promise of nothing stays: %+v, %v", b.Reservations, err)
	}
}

// A reading of a lower block counts once the chain forked below the one before, as the other branch may be shorter; a
// node that lags still restores nothing.
func TestBalanceOfALostBlockIsReadAgainAtALowerOne(t *testing.T) {
	n := chain.Units
	b := wallet.Balance{}

	UpdateBalance(&b, chain.Ref{Height: 10, Hash: "a10"}, n(100))

	if RewindBalance(&b, 10) || UpdateBalance(&b, chain.Ref{Height: 9, Hash: "a9"}, n(1)) {
		t.Error("without a fork below it a lower block was taken")
	}

	if !RewindBalance(&b, 7) || b.OnChain != n(100) || b.At.Hash != "" {
		t.Errorf("after a fork: %+v", b)
	}

	if UpdateBalance(&b, chain.Ref{Height: 6, Hash: "a6"}, n(1)) ||
		!UpdateBalance(&b, chain.Ref{Height: 8, Hash: "b8"}, n(30)) || b.OnChain != n(30) {
		t.Errorf("read on the other branch: %+v", b)
	}
}
