package scan_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

// Row 76 of the pitfalls: a network that makes its fall-back depth in less time than Fallback is not final sooner.
func TestFallbackIsATimeToo(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	n := chain.Network{Rule: chain.RuleSafe, Confirmations: 300, Fallback: 10 * time.Minute}

	for _, c := range []struct {
		name        string
		pace        time.Duration
		least, most uint64 // how deep the newest final block is
	}{
		{"2 s, as 300 blocks are", 2 * time.Second, 299, 310},
		{"12 s", 12 * time.Second, 299, 299},
		{"200 ms, five blocks share a time", 200 * time.Millisecond, 2_995, 3_005},
	} {
		var cursor scan.Cursor

		ref := func(height uint64) chain.Ref {
			at := start.Add(time.Duration(height) * c.pace).Truncate(time.Second)

			return chain.Ref{Height: height, Hash: "h", Time: at}
		}

		for height := range uint64(10_000) {
			cursor = scanstate.Forward(cursor, []chain.Block{{Ref: ref(height)}})
		}

		deepest := uint64(0)

		for depth := range uint64(5_000) {
			if scanstate.IsFinal(cursor, n, n.Confirmations, ref(cursor.At.Height-depth)) {
				deepest = depth

				break
			}
		}

		if deepest < c.least || deepest > c.most {
			t.Errorf("%s: %d blocks deep, want %d to %d", c.name, deepest, c.least, c.most)
		}

		// Each block up to FinalHeight is final by IsFinal too.
		height, ok := scanstate.FinalHeight(cursor, n, n.Confirmations)
		if !ok || cursor.At.Height-height < deepest || cursor.At.Height-height > 2*deepest {
			t.Errorf(
				"%s: final up to %d blocks deep, a block is from %d on",
				c.name,
				cursor.At.Height-height,
				deepest,
			)
		}

		cursor.Safe = ref(cursor.At.Height - 10)
		if !scanstate.IsFinal(cursor, n, n.Confirmations, cursor.Safe) {
			t.Errorf("%s: a safe block is not final", c.name)
		}
	}
}

// Where blocks are counted their times say nothing: a later one may be timed before an earlier one, as on Bitcoin.
func TestCountedBlocksAreFinalWhateverTheirTimes(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	n := chain.Network{Rule: chain.RuleConfirmations, Confirmations: 3, Fallback: time.Hour}
	cursor := scan.Cursor{At: chain.Ref{Height: 12, Hash: "h", Time: at.Add(-time.Hour)}}

	if !scanstate.IsFinal(cursor, n, 3, chain.Ref{Height: 10, Hash: "h", Time: at}) {
		t.Error("a block of three is not final")
	}
}

func TestFinalBlocksByTheNetworksRule(t *testing.T) {
	at := func(height uint64) chain.Ref { return chain.Ref{Height: height, Hash: "h"} }

	for _, c := range []struct {
		name     string
		rule     chain.Rule
		cursor   scan.Cursor
		required uint64
		want     uint64
		none     bool
	}{
		{name: "nothing was read", rule: chain.RuleConfirmations, none: true},
		{"by count", chain.RuleConfirmations, scan.Cursor{At: at(10), Final: at(10)}, 3, 8, false},
		{"its own block is enough", chain.RuleConfirmations, scan.Cursor{At: at(10)}, 1, 10, false},
		{"a short chain", chain.RuleConfirmations, scan.Cursor{At: at(1)}, 3, 0, true},
		{"safe", chain.RuleSafe, scan.Cursor{At: at(10), Safe: at(7), Final: at(4)}, 3, 7, false},
		{"safe without one", chain.RuleSafe, scan.Cursor{At: at(10), Final: at(4)}, 3, 4, false},
		{"finalized", chain.RuleFinalized, scan.Cursor{At: at(10), Safe: at(7), Final: at(4)}, 3, 4, false},
		{"finalized without one", chain.RuleFinalized, scan.Cursor{At: at(10)}, 3, 8, false},
		{"final above what was read", chain.RuleFinalized, scan.Cursor{At: at(10), Final: at(12)}, 3, 10, false},
	} {
		n := chain.Network{Rule: c.rule}

		got, ok := scanstate.FinalHeight(c.cursor, n, c.required)
		if ok == c.none || got != c.want {
			t.Errorf("%s: %d %v, want %d", c.name, got, ok, c.want)
		}

		if !c.none && (!scanstate.IsFinal(c.cursor, n, c.required, at(c.want)) ||
			scanstate.IsFinal(c.cursor, n, c.required, at(c.want+1))) {
			t.Errorf("%s: block %d is the last final one", c.name, c.want)
		}
	}
}
