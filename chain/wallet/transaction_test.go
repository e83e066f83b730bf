package wallet

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func attemptOf(hash string, nonce uint64) Attempt {
	return Attempt{Signed: chain.Signed{TxHash: hash, Nonce: nonce, MaxFee: chain.Units(10)}, SignedAt: at}
}

var amounts = cmp.Comparer(func(a, b chain.Amount) bool { return a == b })

// in returns a transaction in a state, with two attempts once it is signed.
func in(s State) Transaction {
	t := Transaction{ID: "t", State: s, CreatedAt: at, DueAt: at}
	switch s {
	case Queued:
		return t
	case Failed:
		t.Failure, t.DueAt = FailStale, time.Time{}
		return t
	default:
	}

	t.Attempts, t.Nonce, t.TxHash = []Attempt{attemptOf("a", 7), attemptOf("b", 7)}, 7, "b"
	if s == Included || s == Confirmed {
		t.TxHash, t.Block, t.Fee = "a", chain.Ref{Height: 5, Hash: "five"}, chain.Units(3)
		t.Transfers = []chain.Transfer{{TxHash: "a"}}
	}

	return t
}

// Every move from every state: the state it leads to, or "" where it is refused.
// move is one of the moves of a transaction.
type move = func(t *Transaction) error

func fail(code string) move { return func(t *Transaction) error { return t.Fail(code) } }

func TestMoves(t *testing.T) {
	states := []State{Queued, Signed, Broadcast, Included, Confirmed, Failed}
	five := chain.TxStatus{Block: chain.Ref{Height: 5, Hash: "five"}}
	six := chain.TxStatus{Block: chain.Ref{Height: 6, Hash: "six"}, Fee: chain.Units(4)}

	moves := []struct {
		name string
		move func(*Transaction) error
		to   [6]State
	}{
		{
			"sign",
			func(t *Transaction) error { return t.Sign(attemptOf("c", 7)) },
			[6]State{Signed, Signed, Broadcast, "", "", ""},
		},
		{
			"sign the same again",
			func(t *Transaction) error { return t.Sign(attemptOf("a", 7)) },
			[6]State{Signed, Signed, Broadcast, Included, Confirmed, ""},
		},
		{
			"sign another nonce",
			func(t *Transaction) error { return t.Sign(attemptOf("c", 8)) },
			[6]State{Signed, "", "", "", "", ""},
		},
		{"sign without hash", func(t *Transaction) error { return t.Sign(attemptOf("", 7)) }, [6]State{}},
		{
			"sent",
			func(t *Transaction) error { return t.RecordBroadcast("a", at, "no answer") },
			[6]State{"", Signed, Broadcast, Included, Confirmed, ""},
		},
		{
			"taken",
			func(t *Transaction) error { return t.RecordAccepted("a", at) },
			[6]State{"", Broadcast, Broadcast, Included, Confirmed, ""},
		},
		{"foreign taken", func(t *Transaction) error { return t.RecordAccepted("x", at) }, [6]State{}},
		{
			"include",
			func(t *Transaction) error { return t.Include("a", five) },
			[6]State{"", Included, Included, Included, Confirmed, ""},
		},
		{
			"include elsewhere",
			func(t *Transaction) error { return t.Include("b", six) },
			[6]State{"", Included, Included, Included, "", ""},
		},
		{"include foreign", func(t *Transaction) error { return t.Include("x", six) }, [6]State{}},
		{
			"include nowhere",
			func(t *Transaction) error { return t.Include("a", chain.TxStatus{}) },
			[6]State{},
		},
		{"confirm", (*Transaction).Confirm, [6]State{"", "", "", Confirmed, Confirmed, ""}},
		{"retract", (*Transaction).Retract, [6]State{"", "", Broadcast, Broadcast, Broadcast, ""}},
		{"fail canceled", fail(FailCanceled), [6]State{Failed, "", "", "", "", ""}},
		{"fail stale", fail(FailStale), [6]State{Failed, "", "", "", "", Failed}},
		{"fail unfunded", fail(FailInsufficientFunds), [6]State{Failed, "", "", "", "", ""}},
		{"fail not payable", fail(FailNotPayable), [6]State{Failed, "", "", "", "", ""}},
		{"fail refused", fail(FailSignerRefused + "policy"), [6]State{Failed, "", "", "", "", ""}},
		{"fail conflict", fail(FailConflict), [6]State{"", Failed, Failed, "", "", ""}},
		{
			"fail against another",
			func(t *Transaction) error { return t.FailAgainst(Conflict{TxHash: "x"}) },
			[6]State{"", Failed, Failed, "", "", ""},
		},
		{"fail expired", fail(FailExpired), [6]State{"", Failed, Failed, "", "", ""}},
		{"fail reverted", fail(FailReverted), [6]State{"", "", "", Failed, "", ""}},
		{"fail for no known reason", fail("whim"), [6]State{}},
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
	tx := in(Queued)
	must := func(err error) {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}
	}
	must(tx.Sign(attemptOf("a", 7)))

	if tx.Nonce != 7 || tx.TxHash != "a" {
		t.Fatalf("signed: %+v", tx)
	}

	first := tx
	must(tx.RecordAccepted("a", at))

	if first.Attempts[0].FirstTakenAt != (time.Time{}) {
		t.Error("a move wrote into an earlier copy of the record")
	}

	must(tx.Sign(attemptOf("b", 7)))

	if tx.State != Broadcast || tx.TxHash != "b" || len(tx.Attempts) != 2 {
		t.Fatalf("replaced: %+v", tx)
	}

	must(tx.Include("a", chain.TxStatus{Block: chain.Ref{Height: 5, Hash: "five"}, Fee: chain.Units(3)}))

	if tx.TxHash != "a" || tx.Fee != chain.Units(3) {
		t.Fatalf("an earlier attempt won: %+v", tx)
	}

	must(tx.Confirm())
	must(tx.Retract())

	if tx.TxHash != "b" || !tx.Block.IsZero() || !tx.Fee.IsZero() || tx.Transfers != nil ||
		len(tx.Attempts) != 2 {
		t.Errorf("retracted: %+v", tx)
	}
}

// A transaction that failed as reverted stays failed, whatever becomes of its block.
func TestRevertedFollowsItsBlock(t *testing.T) {
	reverted := in(Included)
	if err := reverted.Fail(FailReverted); err != nil {
		t.Fatal(err)
	}

	block := chain.Ref{Height: 9, Hash: "nine"}
	executed := chain.TxStatus{Block: block, Fee: chain.Units(4)}
	inVain := chain.TxStatus{Block: block, Fee: chain.Units(4), Reverted: true}

	for name, change := range map[string]func(t *Transaction) error{
		"executed in another block":     func(t *Transaction) error { return t.Include("a", executed) },
		"displaced in its block":        func(t *Transaction) error { return t.FailAgainst(Conflict{TxHash: "x"}) },
		"expired in its block":          func(t *Transaction) error { return t.Fail(FailExpired) },
		"back on its way":               func(t *Transaction) error { return t.RecordAccepted("a", at) },
		"confirmed":                     (*Transaction).Confirm,
		"out of a block it did not pay": func(t *Transaction) error { t.Failure = FailConflict; return t.Retract() },
	} {
		now := reverted
		if err := change(&now); !errors.Is(err, fault.State) {
			t.Errorf("%s: %v, %+v", name, err, now)
		}
	}

	again := reverted
	if err := again.Include("a", inVain); err != nil || again.Fee != chain.Units(4) || again.Block != block ||
		again.State != Failed {
		t.Errorf("reverted in another block: %v, %+v", err, again)
	}

	out := reverted
	if err := out.Retract(); err != nil || !out.Fee.IsZero() || !out.Block.IsZero() ||
		out.Failure != FailReverted {
		t.Fatalf("out of its block: %v, %+v", err, out)
	}

	won := Conflict{TxHash: "x", Own: true}
	if err := out.FailDisplaced(won, chain.Units(5)); err != nil || out.State != Failed ||
		out.Failure != FailConflict || out.Conflict != won || out.Fee != chain.Units(5) {
		t.Errorf("displaced: %v, %+v", err, out)
	}

	if err := out.Include("a", inVain); !errors.Is(err, fault.State) {
		t.Errorf("what is displaced comes back: %v, %+v", err, out)
	}
}
