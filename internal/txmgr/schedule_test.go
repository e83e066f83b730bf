package txmgr

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
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

// An included transaction is looked at when its blocks may have come, and not in vain before.
func TestIncludedWaitsForItsBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		finalized       bool // the node says what is final
		blockTime       time.Duration
		read, confirmed uint64 // the last block read, and how many blocks confirm
		want            time.Duration
	}{
		"a block of two is lacking": {
			blockTime: 8 * time.Second,
			read:      1_100,
			confirmed: 2,
			want:      6 * time.Second,
		},
		"many blocks are lacking": {
			blockTime: 12 * time.Second,
			read:      1_100,
			confirmed: 12,
			want:      maxUntilFinal,
		},
		"quick blocks": {
			blockTime: 200 * time.Millisecond,
			read:      1_100,
			confirmed: 4,
			want:      2 * time.Second,
		},
		"final already": {
			blockTime: 12 * time.Second,
			read:      1_111,
			confirmed: 12,
			want:      2 * time.Second,
		},
		"the node says what is final": {
			finalized: true,
			blockTime: 12 * time.Second,
			read:      1_100,
			confirmed: 12,
			want:      2 * time.Second,
		},
		"read again from below its block": {
			blockTime: 12 * time.Second,
			read:      1_090,
			confirmed: 12,
			want:      maxUntilFinal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			included := waitingIn(wallet.Included)
			included.Block = chain.Ref{Height: 1_100, Hash: "b", Time: at}

			cursor := scan.Cursor{At: chain.Ref{Height: c.read, Hash: "r", Time: at}}
			n := chain.Network{Rule: chain.RuleConfirmations, Confirmations: c.confirmed}

			for i := range uint64(80) { // up to 64 of them are remembered one by one
				cursor.Recent = append(cursor.Recent, chain.Ref{
					Height: c.read - i - 1,
					Hash:   "e",
					Time:   at.Add(-time.Duration(i+1) * c.blockTime),
				})
			}

			if c.blockTime < time.Second {
				cursor.Recent = append(
					cursor.Recent,
					chain.Ref{Height: c.read - 800, Time: at.Add(-800 * c.blockTime)},
				)
			}

			if c.finalized {
				n.Rule = chain.RuleFinalized
				cursor.Final = chain.Ref{Height: 50, Hash: "f", Time: at}
			}

			schedule(&included, at, at, confirmedIntervals)
			awaitBlocks(&included, at, n, cursor)

			if got := included.DueAt.Sub(at); got != c.want {
				t.Errorf("looked at after %s, want %s", got, c.want)
			}
		})
	}

	batched := waitingIn(wallet.Included)
	batched.BatchedBy = "other"
	awaitBlocks(&batched, at, chain.Network{Confirmations: 6}, scan.Cursor{})

	if !batched.DueAt.IsZero() {
		t.Error("a member of a batch is looked at by itself")
	}
}
