package txmgr

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func attemptOf(hash string, nonce uint64) wallet.Attempt {
	return wallet.Attempt{Signed: chain.Signed{TxHash: hash, Nonce: nonce}, SignedAt: at}
}

// waitingIn returns a transaction in a state, created and signed at the same time.
func waitingIn(s wallet.State) wallet.Transaction {
	t := wallet.Transaction{ID: "t", State: s, CreatedAt: at}
	if s != wallet.Queued {
		t.Attempts = []wallet.Attempt{attemptOf("a", 7)}
	}

	return t
}

func TestScheduleSlowsDownToABound(t *testing.T) {
	for _, s := range []wallet.State{
		wallet.Queued,
		wallet.Signed,
		wallet.Broadcast,
		wallet.Included,
	} {
		tx := waitingIn(s)
		tx.Block.Time = at
		last := time.Duration(0)

		for age := time.Duration(0); age < 100*24*time.Hour; age = age*2 + time.Second {
			schedule(&tx, at.Add(age), at.Add(age), confirmedIntervals)

			every := tx.DueAt.Sub(at.Add(age))
			if every < last || every < 2*time.Second || every > 5*time.Minute {
				t.Fatalf("%s after %s: due in %s, before that in %s", s, age, every, last)
			}

			last = every
		}

		if last != 5*time.Minute {
			t.Errorf("%s ends at %s", s, last)
		}
	}

	confirmed := waitingIn(wallet.Confirmed)
	confirmed.Block.Time = at
	schedule(&confirmed, at.Add(time.Minute), at.Add(time.Minute), confirmedIntervals)

	if confirmed.DueAt.IsZero() {
		t.Error("nobody looks at a transaction that was confirmed a minute ago")
	}

	schedule(&confirmed, at.Add(30*24*time.Hour), at.Add(time.Hour), confirmedIntervals)

	if confirmed.DueAt.IsZero() {
		t.Error("nobody looks at a transaction after which an hour of blocks was read: a fork may still show")
	}

	schedule(&confirmed, at.Add(24*time.Hour), at.Add(24*time.Hour), confirmedIntervals)

	if !confirmed.DueAt.IsZero() {
		t.Error("a transaction confirmed a day ago is looked at for ever")
	}
}

func TestCarriedTransactionIsNotScheduled(t *testing.T) {
	carried := waitingIn(wallet.Queued)
	carried.BatchedBy = "carrier"
	schedule(&carried, at.Add(time.Hour), at.Add(time.Hour), confirmedIntervals)

	if !carried.DueAt.IsZero() {
		t.Error("a carried transaction is looked at by itself")
	}
}
