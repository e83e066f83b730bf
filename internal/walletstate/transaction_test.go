package walletstate

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func attemptOf(hash string, nonce uint64) wallet.Attempt {
	return wallet.Attempt{
		Signed:   chain.Signed{TxHash: hash, Nonce: nonce, MaxFee: chain.Units(10)},
		SignedAt: at,
	}
}

var amounts = cmp.Comparer(func(a, b chain.Amount) bool { return a == b })

// in returns a transaction in a state, with two attempts once it is signed.
func in(s wallet.State) wallet.Transaction {
	t := wallet.Transaction{ID: "t", State: s, CreatedAt: at, DueAt: at}
	switch s {
	case wallet.Queued:
		return t
	case wallet.Failed:
		t.Failure, t.DueAt = wallet.FailStale, time.Time{}
		return t
	default:
	}

	t.Attempts, t.Nonce, t.TxHash = []wallet.Attempt{attemptOf("a", 7), attemptOf("b", 7)}, 7, "b"
	if s == wallet.Included || s == wallet.Confirmed {
		t.TxHash, t.Block, t.Fee = "a", chain.Ref{Height: 5, Hash: "five"}, chain.Units(3)
		t.Transfers = []chain.Transfer{{TxHash: "a"}}
	}

	return t
}

// Every move from every state: the state it leads to, or "" where it is refused.
// move is one of the moves of a transaction.
type move = func(t *wallet.Transaction) error

func fail(code string) move { return func(t *wallet.Transaction) error { return Fail(t, code) } }

func TestMoves(t *testing.T) {
	states := []wallet.State{
		wallet.Queued,
		wallet.Signed,
		wallet.Broadcast,
		wallet.Included,
		wallet.Confirmed,
		wallet.Failed,
	}
	five := chain.TxStatus{Block: chain.Ref{Height: 5, Hash: "five"}}
	six := chain.TxStatus{Block: chain.Ref{Height: 6, Hash: "six"}, Fee: chain.Units(4)}

	moves := []struct {
		name string
		move func(*wallet.Transaction) error
		to   [6]wallet.State
	}{
		{
			"sign",
			func(t *wallet.Transaction) error { return Sign(t, attemptOf("c", 7)) },
			[6]wallet.State{wallet.Signed, wallet.Signed, wallet.Broadcast, "", "", ""},
		},
		{
			"sign the same again",
			func(t *wallet.Transaction) error { return Sign(t, attemptOf("a", 7)) },
			[6]wallet.State{
				wallet.Signed,
				wallet.Signed,
				wallet.Broadcast,
				wallet.Included,
				wallet.Confirmed,
				"",
			},
		},
		{
			"sign another nonce",
			func(t *wallet.Transaction) error { return Sign(t, attemptOf("c", 8)) },
			[6]wallet.State{wallet.Signed, "", "", "", "", ""},
		},
		{
			"sign without hash",
			func(t *wallet.Transaction) error { return Sign(t, attemptOf("", 7)) },
			[6]wallet.State{},
		},
		{
			"sent",
			func(t *wallet.Transaction) error { return RecordBroadcast(t, "a", at, "no answer") },
			[6]wallet.State{"", wallet.Signed, wallet.Broadcast, wallet.Included, wallet.Confirmed, ""},
		},
		{
			"taken",
			func(t *wallet.Transaction) error { return RecordAccepted(t, "a", at) },
			[6]wallet.State{"", wallet.Broadcast, wallet.Broadcast, wallet.Included, wallet.Confirmed, ""},
		},
		{
			"foreign taken",
			func(t *wallet.Transaction) error { return RecordAccepted(t, "x", at) },
			[6]wallet.State{},
		},
		{
			"include",
			func(t *wallet.Transaction) error { return Include(t, "a", five) },
			[6]wallet.State{"", wallet.Included, wallet.Included, wallet.Included, wallet.Confirmed, ""},
		},
		{
			"include elsewhere",
			func(t *wallet.Transaction) error { return Include(t, "b", six) },
			[6]wallet.State{"", wallet.Included, wallet.Included, wallet.Included, "", ""},
		},
		{
			"include foreign",
			func(t *wallet.Transaction) error { return Include(t, "x", six) },
			[6]wallet.State{},
		},
		{
			"include nowhere",
			func(t *wallet.Transaction) error { return Include(t, "a", chain.TxStatus{}) },
			[6]wallet.State{},
		},
		{"confirm", Confirm, [6]wallet.State{"", "", "", wallet.Confirmed, wallet.Confirmed, ""}},
		{
			"retract",
			Retract,
			[6]wallet.State{"", "", wallet.Broadcast, wallet.Broadcast, wallet.Broadcast, ""},
		},
		{"fail canceled", fail(wallet.FailCanceled), [6]wallet.State{wallet.Failed, "", "", "", "", ""}},
		{"fail stale", fail(wallet.FailStale), [6]wallet.State{wallet.Failed, "", "", "", "", wallet.Failed}},
		{
			"fail unfunded",
			fail(wallet.FailInsufficientFunds),
			[6]wallet.State{wallet.Failed, "", "", "", "", ""},
		},
		{"fail not payable", fail(wallet.FailNotPayable), [6]wallet.State{wallet.Failed, "", "", "", "", ""}},
		{
			"fail of an unsafe token",
			fail(wallet.FailTokenUnsafe),
			[6]wallet.State{wallet.Failed, wallet.Failed, wallet.Failed, "", "", ""},
		},
		{
			"fail refused",
			fail(wallet.FailSignerRefused + "policy"),
			[6]wallet.State{wallet.Failed, "", "", "", "", ""},
		},
		{
			"fail conflict",
			fail(wallet.FailConflict),
			[6]wallet.State{"", wallet.Failed, wallet.Failed, "", "", ""},
		},
		{
			"fail against another",
			func(t *wallet.Transaction) error { return FailAgainst(t, wallet.Conflict{TxHash: "x"}) },
			[6]wallet.State{"", wallet.Failed, wallet.Failed, "", "", ""},
		},
		{
			"fail expired",
			fail(wallet.FailExpired),
			[6]wallet.State{"", wallet.Failed, wallet.Failed, "", "", ""},
		},
		{"fail reverted", fail(wallet.FailReverted), [6]wallet.State{"", "", "", wallet.Failed, "", ""}},
		{"fail for no known reason", fail("whim"), [6]wallet.State{}},
	}
	for _, m := range moves {
		for i, from := range states {
			before := in(from)
			after := in(from)

			err := m.move(&after)
			if want := m.to[i]; want == "" {
				if !errors.Is(err, fault.State) || fault.Code(err) != "transaction_state" {
					t.Errorf("%s from %s: error %v, want fault.State", m.name, from, err)
				}

				if d := cmp.Diff(before, after, amounts); d != "" {
					t.Errorf("%s from %s was refused and changed the record:\n%s", m.name, from, d)
				}

				continue
			} else if err != nil || after.State != want {
				t.Errorf("%s from %s leads to %s (%v), want %s", m.name, from, after.State, err, want)
				continue
			}

			again := after
			if err := m.move(&again); err != nil {
				t.Errorf("%s from %s, a second time: %v", m.name, from, err)
			} else if d := cmp.Diff(after, again, amounts); d != "" {
				t.Errorf("%s from %s, a second time, changed the record:\n%s", m.name, from, d)
			}
		}
	}
}

func TestMovesKeepTheRecordWhole(t *testing.T) {
	tx := in(wallet.Queued)
	must := func(err error) {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}
	}
	must(Sign(&tx, attemptOf("a", 7)))

	if tx.Nonce != 7 || tx.TxHash != "a" {
		t.Fatalf("signed: %+v", tx)
	}

	first := tx
	must(RecordAccepted(&tx, "a", at))

	if first.Attempts[0].FirstTakenAt != (time.Time{}) {
		t.Error("a move wrote into an earlier copy of the record")
	}

	must(Sign(&tx, attemptOf("b", 7)))

	if tx.State != wallet.Broadcast || tx.TxHash != "b" || len(tx.Attempts) != 2 {
		t.Fatalf("replaced: %+v", tx)
	}

	must(Include(&tx, "a", chain.TxStatus{Block: chain.Ref{Height: 5, Hash: "five"}, Fee: chain.Units(3)}))

	if tx.TxHash != "a" || tx.Fee != chain.Units(3) {
		t.Fatalf("an earlier attempt won: %+v", tx)
	}

	must(Confirm(&tx))
	must(Retract(&tx))

	if tx.TxHash != "b" || !tx.Block.IsZero() || !tx.Fee.IsZero() || tx.Transfers != nil ||
		len(tx.Attempts) != 2 {
		t.Errorf("retracted: %+v", tx)
	}
}

// A transaction that failed as reverted stays failed, whatever becomes of its block.
func TestRevertedFollowsItsBlock(t *testing.T) {
	reverted := in(wallet.Included)
	if err := Fail(&reverted, wallet.FailReverted); err != nil {
		t.Fatal(err)
	}

	block := chain.Ref{Height: 9, Hash: "nine"}
	executed := chain.TxStatus{Block: block, Fee: chain.Units(4)}
	inVain := chain.TxStatus{Block: block, Fee: chain.Units(4), Reverted: true}

	for name, change := range map[string]func(t *wallet.Transaction) error{
		"executed in another block": func(t *wallet.Transaction) error { return Include(t, "a", executed) },
		"displaced in its block": func(t *wallet.Transaction) error {
			return FailAgainst(t, wallet.Conflict{TxHash: "x"})
		},
		"expired in its block": func(t *wallet.Transaction) error { return Fail(t, wallet.FailExpired) },
		"back on its way":      func(t *wallet.Transaction) error { return RecordAccepted(t, "a", at) },
		"confirmed":            Confirm,
		"out of a block it did not pay": func(t *wallet.Transaction) error {
			t.Failure = wallet.FailConflict
			return Retract(t)
		},
	} {
		now := reverted
		if err := change(&now); !errors.Is(err, fault.State) {
			t.Errorf("%s: %v, %+v", name, err, now)
		}
	}

	again := reverted
	if err := Include(
		&again,
		"a",
		inVain,
	); err != nil || again.Fee != chain.Units(4) ||
		again.Block != block ||
		again.State != wallet.Failed {
		t.Errorf("reverted in another block: %v, %+v", err, again)
	}

	out := reverted
	if err := Retract(&out); err != nil || !out.Fee.IsZero() || !out.Block.IsZero() ||
		out.Failure != wallet.FailReverted {
		t.Fatalf("out of its block: %v, %+v", err, out)
	}

	won := wallet.Conflict{TxHash: "x", Own: true}
	if err := FailDisplaced(&out, won, chain.Units(5)); err != nil || out.State != wallet.Failed ||
		out.Failure != wallet.FailConflict || out.Conflict != won || out.Fee != chain.Units(5) {
		t.Errorf("displaced: %v, %+v", err, out)
	}

	if err := Include(&out, "a", inVain); !errors.Is(err, fault.State) {
		t.Errorf("what is displaced comes back: %v, %+v", err, out)
	}
}
