package engine

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
)

type reportingDriver struct {
	chain.Driver
	seen []chain.NodeReport
}

func (d reportingDriver) NodeReports() []chain.NodeReport { return d.seen }

// Health shows what a driver saw of each of its nodes.
func TestHealthReportsTheNodes(t *testing.T) {
	silent := sim.New(sim.Config{}).Driver()

	if got := nodeReports(silent); got != nil {
		t.Errorf("a driver that tells nothing: %+v", got)
	}

	since := time.Unix(1, 0)
	seen := []chain.NodeReport{
		{Host: "a", Version: "/Satoshi:31.0.0/", Warnings: []string{"w"}},
		{Host: "b", Problem: "it follows another chain", Since: since},
	}

	got := nodeReports(reportingDriver{silent, seen})
	if len(got) != 2 || got[0].Version != "/Satoshi:31.0.0/" || got[0].Warnings[0] != "w" ||
		got[1].Problem != seen[1].Problem || !got[1].Since.Equal(since) {
		t.Errorf("%+v", got)
	}
}
