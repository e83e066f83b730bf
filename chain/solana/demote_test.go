//go:build unix

package solana_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
)

// TestADemotedNodeIsNotPreferred demotes a node whose answers contradict another's: the other one is asked from then
// on, and compared with it all the same.
func TestADemotedNodeIsNotPreferred(t *testing.T) {
	s := newScenario(t, 1)
	d := s.driver(t, true)

	head, err := d.Head(t.Context())
	must(t, err)

	d.DemoteNode("it contradicts itself")

	asked, before := s.bad.called("getTransaction"), s.bad.called("getMultipleAccounts")

	for range 2 {
		_, err = d.Transaction(t.Context(), s.payments[0])
		must(t, err)
	}

	if now := s.bad.called("getTransaction"); now != asked {
		t.Errorf("the demoted node was asked %d times for a transaction", now-asked)
	}

	held := []chain.Holding{{Address: s.to, AssetID: d.Network().Assets[0].ID}}
	_, err = d.Balances(t.Context(), head.Tip, held)
	must(t, err)

	if s.bad.called("getMultipleAccounts") == before {
		t.Error("the demoted node is not compared with")
	}
}
