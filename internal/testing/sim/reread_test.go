package sim_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// One node's made-up block with a made-up payment is found out by the others.
func TestMadeUpBlock(t *testing.T) {
	p := newPayment(t, sim.Config{Nodes: 2})
	madeUp := chain.Transfer{
		TxHash:  "made-up",
		Index:   1,
		To:      p.to,
		AssetID: asset(t, p.c, "USDX").ID,
		Amount:  dollars(1_000),
	}
	p.c.SetNode(0, sim.NodeFaults{
		Blocks: map[uint64]chain.Block{3: {Transfers: []chain.Transfer{madeUp}}},
	})

	blocks, err := p.c.Blocks(t.Context(), 2, 5)
	if err != nil || len(blocks) != 2 || blocks[1].Parent != p.block.Hash || len(blocks[1].Transfers) != 1 ||
		blocks[1].Transfers[0] != madeUp || blocks[1].Hash == "" || !blocks[1].Time.Equal(start) {
		t.Fatalf("blocks %+v, %v, want the made-up one after block 2, and none after it", blocks, err)
	}

	ref, err := p.c.RefAt(t.Context(), 3)
	if err != nil || ref != blocks[1].Ref {
		t.Errorf("RefAt is %+v, %v, want %+v", ref, err, blocks[1].Ref)
	}

	found, err := p.c.Transaction(t.Context(), "made-up")
	if err != nil || found.Block != ref || len(found.Transfers) != 1 {
		t.Errorf("found %+v, %v, want it in the made-up block", found, err)
	}

	wantFault(t, p.c.ConfirmRef(t.Context(), ref), fault.NotFound, "block_unknown")

	_, err = p.c.Reread(t.Context(), ref, nil)
	wantFault(t, err, fault.NotFound, "block_unknown")

	_, err = p.c.Balances(t.Context(), ref, nil)
	if err != nil {
		t.Errorf("the node that has the block gives no balances: %v", err)
	}

	p.c.DemoteNode("it contradicts itself")

	if after := blockAt(t, p.c, 4); after.Parent == ref.Hash {
		t.Error("block 4 of the other node follows the made-up one")
	}

	wantFault(t, p.c.ConfirmRef(t.Context(), ref), fault.NotFound, "block_unknown")
}

func TestConfirmRef(t *testing.T) {
	healthy := sim.NodeFaults{}

	for name, test := range map[string]struct {
		nodes []sim.NodeFaults
		code  string // empty for nil
	}{
		"one node":                   {[]sim.NodeFaults{healthy}, ""},
		"one node without an answer": {[]sim.NodeFaults{{Syncing: true}}, ""},
		"two agree":                  {[]sim.NodeFaults{healthy, healthy}, ""},
		"the other is syncing":       {[]sim.NodeFaults{healthy, {Syncing: true}}, "node_unavailable"},
		"the other is behind":        {[]sim.NodeFaults{healthy, {Behind: 4}}, "node_unavailable"},
		"the other is just there":    {[]sim.NodeFaults{healthy, {Behind: 3}}, ""},
		"the other is pruned":        {[]sim.NodeFaults{healthy, {PrunedBelow: 3}}, "node_unavailable"},
		"the other is foreign":       {[]sim.NodeFaults{healthy, {OtherNetwork: true}}, "node_unavailable"},
		"the other has another": {
			[]sim.NodeFaults{healthy, {Blocks: map[uint64]chain.Block{2: {}}}},
			"block_unknown",
		},
		"only the second has it":   {[]sim.NodeFaults{{Syncing: true}, healthy}, "node_unavailable"},
		"two of three have it":     {[]sim.NodeFaults{{Blocks: map[uint64]chain.Block{2: {}}}, healthy, healthy}, ""},
		"two of three are syncing": {[]sim.NodeFaults{healthy, {Syncing: true}, {Syncing: true}}, "node_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPayment(t, sim.Config{Nodes: len(test.nodes)})
			for i, faults := range test.nodes {
				p.c.SetNode(i, faults)
			}

			err := p.c.ConfirmRef(t.Context(), p.block.Ref)
			if fault.Code(err) != test.code || (err == nil) != (test.code == "") {
				t.Errorf("ConfirmRef: %v, want %q", err, test.code)
			}
		})
	}
}

func TestReread(t *testing.T) {
	p := newPayment(t, sim.Config{Nodes: 3})
	read := func(n int) sim.NodeFaults { // a node that its reading of block 2 shows
		return sim.NodeFaults{UnknownHeader: true, DropsBloom: true, DropsLogs: []string{p.hash}[:n]}
	}
	p.c.SetNode(0, read(1))

	for range 4 { // never the preferred node
		if b, err := p.c.Reread(t.Context(), p.block.Ref, nil); err != nil || len(b.Transfers) != 1 {
			t.Errorf("Reread: %+v, %v, want another node's block", b, err)
		}
	}

	p.c.SetNode(2, read(1))

	lengths := map[int]int{}

	for range 4 {
		b, err := p.c.Reread(t.Context(), p.block.Ref, nil)
		if err != nil {
			t.Fatal(err)
		}

		lengths[len(b.Transfers)]++
	}

	if lengths[0] != 2 || lengths[1] != 2 {
		t.Errorf("numbers of transfers %v, want each of the other nodes twice", lengths)
	}

	p.c.SetNode(1, sim.NodeFaults{Syncing: true})
	p.c.SetNode(2, sim.NodeFaults{Behind: 4})

	if b, err := p.c.Reread(t.Context(), p.block.Ref, nil); err != nil || len(b.Transfers) != 0 {
		t.Errorf("Reread: %+v, %v, want the preferred node's block in the end", b, err)
	}
}
