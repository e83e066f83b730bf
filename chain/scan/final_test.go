package scan_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

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
