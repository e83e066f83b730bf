package engine

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/health"
)

// A tip is stale against time, where the nodes of a live network agree on an old one.
func TestStaleTip(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cursor := func(tip chain.Ref, pace time.Duration) scan.Cursor {
		c := scan.Cursor{Tip: tip, At: tip}
		if pace > 0 {
			c.Recent = []chain.Ref{{Height: tip.Height - 100, Time: tip.Time.Add(-100 * pace)}}
		}

		return c
	}

	for name, test := range map[string]struct {
		network chain.Network
		pace    time.Duration // as measured; 0: not
		age     time.Duration
		want    bool
	}{
		"three hours":                 {bitcoin.Mainnet, 10 * time.Minute, 3 * time.Hour, false},
		"more":                        {bitcoin.Mainnet, 10 * time.Minute, 3*time.Hour + time.Second, true},
		"not measured":                {bitcoin.Mainnet, 0, 3 * time.Hour, false},
		"not measured, for longer":    {bitcoin.Mainnet, 0, 3*time.Hour + time.Second, true},
		"of a fast network":           {bitcoin.Mainnet, time.Second, time.Hour, false},
		"of a fast network, for long": {bitcoin.Mainnet, time.Second, time.Hour + time.Second, true},
		"of a test network":           {bitcoin.Regtest, 10 * time.Minute, 100 * time.Hour, false},
	} {
		tip := chain.Ref{Height: 900, Time: now.Add(-test.age)}
		if got := isStaleTip(test.network, cursor(tip, test.pace), now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}

	if isStaleTip(bitcoin.Mainnet, scan.Cursor{}, now) {
		t.Error("a network that was not read is stale")
	}

	if (health.Report{Networks: []health.Network{{Stale: true}}}).OK() {
		t.Error("a report with a stale network is OK")
	}
}
