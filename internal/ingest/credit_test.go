package ingest

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

func TestTierBeginsAtItsValue(t *testing.T) {
	n := chain.Network{
		Rule:          chain.RuleConfirmations,
		Confirmations: 1,
		Tiers: []chain.Tier{
			{FromUSD: decimal.NewFromInt(150), Confirmations: 4},
			{FromUSD: decimal.NewFromInt(1000), Confirmations: 6},
		},
	}
	for value, want := range map[string]uint64{
		"149.99": 1,
		"150":    4,
		"999.99": 4,
		"1000":   6,
	} {
		if got := confirmationsFor(n, decimal.RequireFromString(value), true); got != want {
			t.Errorf("%s USD need %d confirmations, want %d", value, got, want)
		}
	}
}
