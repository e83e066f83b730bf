package engine

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/health"
)

// A tip is stale against time, where the nodes of a live network agree on an old one.
func TestStaleTip(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fast := bitcoin.Mainnet
	fast.BlockTime = time.Second

	for name, test := range map[string]struct {
		network chain.Network
		age     time.Duration
		want    bool
	}{
		"three hours":                 {bitcoin.Mainnet, 3 * time.Hour, false},
		"more":                        {bitcoin.Mainnet, 3*time.Hour + time.Second, true},
		"of a fast network":           {fast, time.Hour, false},
		"of a fast network, for long": {fast, time.Hour + time.Second, true},
		"of a test network":           {bitcoin.Regtest, 100 * time.Hour, false},
	} {
		tip := chain.Ref{Height: 9, Time: now.Add(-test.age)}
		if got := isStaleTip(test.network, tip, now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}

	if isStaleTip(bitcoin.Mainnet, chain.Ref{}, now) {
		t.Error("a network that was not read is stale")
	}

	if (health.Report{Networks: []health.Network{{Stale: true}}}).OK() {
		t.Error("a report with a stale network is OK")
	}
}
