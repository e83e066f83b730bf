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

	if _, err := p.c.Balances(t.Context(), ref, nil); err != nil {
		t.Errorf("the node that has the block gives no balances: %v", err)
	}

	_, err = p.c.AgreedBlock(t.Context(), ref, []string{"made-up"})
	wantFault(t, err, fault.Unavailable, "nodes_disagree")

	if p.c.PreferredNode() != 1 {
		t.Error("the node is preferred still")
	}

	if after := blockAt(t, p.c, 4); after.Parent == ref.Hash {
		t.Error("block 4 of the other node follows the made-up one")
	}
}

func TestAgreedBlock(t *testing.T) {
	healthy := sim.NodeFaults{}
	other := sim.NodeFaults{Blocks: map[uint64]chain.Block{2: {Ref: chain.Ref{Hash: "other"}}}}

	for name, test := range map[string]struct {
		nodes []sim.NodeFaults
		code  string // empty for nil
	}{
		"one node":                   {[]sim.NodeFaults{healthy}, ""},
		"one node without an answer": {[]sim.NodeFaults{{Syncing: true}}, "node_unavailable"},
		"one node has another":       {[]sim.NodeFaults{other}, "block_unknown"},
		"two agree":                  {[]sim.NodeFaults{healthy, healthy}, ""},
		"the other is syncing":       {[]sim.NodeFaults{healthy, {Syncing: true}}, "nodes_missing"},
		"the other is behind":        {[]sim.NodeFaults{healthy, {Behind: 4}}, "nodes_missing"},
		"the other is just there":    {[]sim.NodeFaults{healthy, {Behind: 3}}, ""},
		"the other is pruned":        {[]sim.NodeFaults{healthy, {PrunedBelow: 3}}, "nodes_missing"},
		"the other is foreign":       {[]sim.NodeFaults{healthy, {OtherNetwork: true}}, "nodes_missing"},
		"the other has another":      {[]sim.NodeFaults{healthy, other}, "nodes_disagree"},
		"both have another":          {[]sim.NodeFaults{other, other}, "block_unknown"},
		"only the second has it":     {[]sim.NodeFaults{{Syncing: true}, healthy}, "nodes_missing"},
		"two of three have it":       {[]sim.NodeFaults{other, healthy, healthy}, ""},
		"two of three are syncing":   {[]sim.NodeFaults{healthy, {Syncing: true}, {Syncing: true}}, "nodes_missing"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPayment(t, sim.Config{Nodes: len(test.nodes)})
			for i, faults := range test.nodes {
				p.c.SetNode(i, faults)
			}

			_, err := p.c.AgreedBlock(t.Context(), p.block.Ref, nil)
			if fault.Code(err) != test.code || (err == nil) != (test.code == "") {
				t.Errorf("AgreedBlock: %v, want %q", err, test.code)
			}
		})
	}
}

// The head that is agreed on is the newest block that two nodes have.
func TestAgreedHead(t *testing.T) {
	fork, long := map[uint64]chain.Block{4: {}, 5: {}}, map[uint64]chain.Block{}
	for height := range uint64(20) {
		long[height+1] = chain.Block{}
	}

	for name, test := range map[string]struct {
		nodes []sim.NodeFaults
		want  uint64
		code  string
		mine  int
	}{
		"one node":              {nodes: []sim.NodeFaults{{Behind: 1}}, want: 4},
		"two agree":             {nodes: []sim.NodeFaults{{}, {}}, want: 5},
		"one is behind":         {nodes: []sim.NodeFaults{{}, {Behind: 2}}, want: 3},
		"one of three is":       {nodes: []sim.NodeFaults{{}, {Behind: 2}, {}}, want: 5},
		"one is silent":         {nodes: []sim.NodeFaults{{}, {Syncing: true}}, code: "nodes_missing"},
		"one is on another one": {nodes: []sim.NodeFaults{{}, {Blocks: fork}}, want: 3},
		"it has been for long":  {nodes: []sim.NodeFaults{{}, {Blocks: long}}, code: "nodes_disagree", mine: 10},
	} {
		p := newPayment(t, sim.Config{Nodes: len(test.nodes)})
		p.c.Mine(test.mine)

		for i, faults := range test.nodes {
			p.c.SetNode(i, faults)
		}

		head, err := p.c.AgreedHead(t.Context())
		if head.Tip.Height != test.want || fault.Code(err) != test.code {
			t.Errorf("%s: %+v, %v", name, head.Tip, err)
		}
	}
}

// What is in a block that cannot be verified is what two nodes show; of a verified one another node's word is enough.
func TestAgreedContents(t *testing.T) {
	p := newPayment(t, sim.Config{Nodes: 3})
	without := sim.NodeFaults{UnknownHeader: true, DropsBloom: true, DropsLogs: []string{p.hash}}
	hashes := []string{p.hash}

	p.c.SetNode(0, without)

	for range 4 { // never the preferred node
		if b, err := p.c.AgreedBlock(t.Context(), p.block.Ref, hashes); err != nil || len(b.Transfers) != 1 {
			t.Errorf("AgreedBlock: %+v, %v, want another node's block", b, err)
		}
	}

	p.c.SetNode(2, without)

	for range 4 {
		if _, err := p.c.AgreedBlock(t.Context(), p.block.Ref, hashes); err != nil {
			t.Errorf("AgreedBlock: %v, want what two nodes show, or one proves", err)
		}
	}

	p.c.SetNode(1, sim.NodeFaults{UnknownHeader: true})
	p.c.SetNode(2, sim.NodeFaults{Syncing: true})

	_, err := p.c.AgreedBlock(t.Context(), p.block.Ref, hashes)
	wantFault(t, err, fault.Unavailable, "nodes_disagree")
}
