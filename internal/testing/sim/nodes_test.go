package sim_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// payment is a payment of 5 dollars in block 2 of a network whose tip is block 5.
type payment struct {
	c     *sim.Chain
	to    chain.Address
	hash  string
	block chain.Block
}

func newPayment(t *testing.T, config sim.Config) payment {
	t.Helper()

	config.Clock = fixed
	c := sim.New(config)
	c.Mine(1)

	p := payment{c: c, to: c.NewAddress()}
	p.hash = c.Pay(p.to, "USDX", dollars(5))
	c.Mine(4)
	p.block = blockAt(t, c, 2)
	blockAt(t, c, 0) // so that the number of requests is even

	return p
}

// seen is what a driver shows of the payment, in words that a table can hold.
func (p payment) seen(t *testing.T) (head uint64, byHash, block string) {
	t.Helper()

	tip, err := p.c.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	found, err := p.c.Transaction(t.Context(), p.hash)

	byHash = fmt.Sprint("shown ", len(found.Transfers))
	if err != nil {
		byHash = fault.Code(err)
	}

	blocks, err := p.c.Blocks(t.Context(), 2, 5)
	switch {
	case err != nil:
		block = fault.Code(err)
	case blocks[0].Hash != p.block.Hash:
		block = "another"
	default:
		block = fmt.Sprint("shown ", len(blocks[0].Transfers))
	}

	if err == nil && blocks[0].Unverified != "" {
		block += ", " + blocks[0].Unverified
	}

	return tip.Tip.Height, byHash, block
}

func TestNodeFaults(t *testing.T) {
	const (
		right      = "shown 1"
		noHeader   = "unknown header fields"
		unverified = "the driver verifies no blocks"
	)

	for name, test := range map[string]struct {
		faults  func(p payment) sim.NodeFaults
		trusts  bool // Config.Unverified
		head    uint64
		byHash  string
		block   string
		another string // what the block is when a second, healthy node can be asked; as block when empty
	}{
		"none":            {nil, false, 5, right, right, ""},
		"none, unchecked": {nil, true, 5, right, right + ", " + unverified, ""},
		"behind": {
			func(payment) sim.NodeFaults { return sim.NodeFaults{Behind: 3} },
			false,
			2,
			right,
			right,
			"",
		},
		"far behind": {
			func(payment) sim.NodeFaults { return sim.NodeFaults{Behind: 4} },
			false,
			1,
			"transaction_unknown",
			"block_unknown",
			right,
		},
		"jumps": { // the second request of three
			func(payment) sim.NodeFaults { return sim.NodeFaults{Jump: 4} },
			false,
			5,
			"transaction_unknown",
			right,
			"",
		},
		"pruned": {
			func(payment) sim.NodeFaults { return sim.NodeFaults{PrunedBelow: 3} },
			false,
			5,
			right,
			"node_pruned",
			right,
		},
		"unknown header": {
			func(payment) sim.NodeFaults { return sim.NodeFaults{UnknownHeader: true} },
			false,
			5,
			right,
			right + ", " + noHeader,
			"",
		},
		"denies the hash": {
			func(p payment) sim.NodeFaults { return sim.NodeFaults{Denies: []string{p.hash}} },
			false,
			5,
			"transaction_unknown",
			right,
			"",
		},
		"empty receipt": {
			func(p payment) sim.NodeFaults { return sim.NodeFaults{EmptyReceipts: []string{p.hash}} },
			false,
			5,
			"shown 0",
			right,
			"",
		},
		"drops logs": {
			func(p payment) sim.NodeFaults { return sim.NodeFaults{DropsLogs: []string{p.hash}} },
			false,
			5,
			right,
			"node_unavailable",
			right,
		},
		"drops logs, unchecked": {
			func(p payment) sim.NodeFaults { return sim.NodeFaults{DropsLogs: []string{p.hash}} },
			true,
			5,
			right,
			"node_unavailable",
			right + ", " + unverified,
		},
		"drops logs and bloom": {
			func(p payment) sim.NodeFaults { return sim.NodeFaults{DropsLogs: []string{p.hash}, DropsBloom: true} },
			false,
			5,
			right,
			"node_unavailable",
			right,
		},
		"drops logs and bloom, unchecked": {
			func(p payment) sim.NodeFaults { return sim.NodeFaults{DropsLogs: []string{p.hash}, DropsBloom: true} },
			true,
			5,
			right,
			"shown 0, " + unverified,
			"",
		},
		"drops logs and bloom under an unknown header": {
			func(p payment) sim.NodeFaults {
				return sim.NodeFaults{DropsLogs: []string{p.hash}, DropsBloom: true, UnknownHeader: true}
			},
			false,
			5,
			right,
			"shown 0, " + noHeader,
			"",
		},
		"drops the logs of another": {
			func(payment) sim.NodeFaults { return sim.NodeFaults{DropsLogs: []string{"another"}} },
			false,
			5,
			right,
			right,
			"",
		},
		"another block": {
			func(payment) sim.NodeFaults { return sim.NodeFaults{Blocks: map[uint64]chain.Block{2: {}}} },
			false,
			5,
			right,
			"another",
			"",
		},
		"other contents under the same hash": {
			func(p payment) sim.NodeFaults {
				return sim.NodeFaults{Blocks: map[uint64]chain.Block{2: {Ref: p.block.Ref}}}
			},
			false,
			5,
			right,
			"node_unavailable",
			right,
		},
		"other contents under the same hash, unchecked": {
			func(p payment) sim.NodeFaults {
				return sim.NodeFaults{Blocks: map[uint64]chain.Block{2: {Ref: p.block.Ref}}}
			},
			true,
			5,
			right,
			"shown 0, " + unverified,
			"",
		},
	} {
		for nodes := 1; nodes <= 2; nodes++ {
			t.Run(fmt.Sprintf("%s, %d nodes", name, nodes), func(t *testing.T) {
				p := newPayment(t, sim.Config{Nodes: nodes, Unverified: test.trusts})
				if test.faults != nil {
					p.c.SetNode(0, test.faults(p))
				}

				head, byHash, block := p.seen(t)

				want := test.block
				if nodes == 2 && test.another != "" {
					want = test.another
				}

				if head != test.head || byHash != test.byHash || block != want {
					t.Errorf(
						"head %d, by hash %q, block %q, want %d, %q, %q",
						head, byHash, block, test.head, test.byHash, want,
					)
				}
			})
		}
	}
}

func TestNodeThatGivesNoAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(c *sim.Chain)
		kind error
		code string
	}{
		"syncing": {
			func(c *sim.Chain) { c.SetNode(0, sim.NodeFaults{Syncing: true}) },
			fault.Unavailable,
			"node_unavailable",
		},
		"another network": {
			func(c *sim.Chain) { c.SetNode(0, sim.NodeFaults{OtherNetwork: true}) },
			fault.Stopped,
			"chain_id_mismatch",
		},
		"failing": {
			func(c *sim.Chain) { c.FailNext(sim.AnyMethod, sim.Unavailable(), 1) },
			fault.Unavailable,
			"node_unavailable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone := newPayment(t, sim.Config{})
			test.fail(alone.c)

			_, err := alone.c.Head(t.Context())
			wantFault(t, err, test.kind, test.code)

			several := newPayment(t, sim.Config{Nodes: 2})
			test.fail(several.c)

			if head, err := several.c.Head(t.Context()); err != nil || head.Tip.Height != 5 {
				t.Errorf("head %+v, %v, want the second node's", head, err)
			}

			several.c.SetNode(1, sim.NodeFaults{OtherNetwork: true})
			test.fail(several.c)

			_, err = several.c.Head(t.Context())
			wantFault(t, err, test.kind, test.code)
		})
	}
}

func TestCheckAsksEveryNode(t *testing.T) {
	c := sim.New(sim.Config{Nodes: 3})
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}

	c.SetNode(2, sim.NodeFaults{OtherNetwork: true})
	wantFault(t, c.Check(t.Context()), fault.Stopped, "chain_id_mismatch")
	c.SetNode(2, sim.NodeFaults{Syncing: true})
	wantFault(t, c.Check(t.Context()), fault.Unavailable, "node_unavailable")
}

func TestDemoteNode(t *testing.T) {
	p := newPayment(t, sim.Config{Nodes: 2})
	p.c.SetNode(0, sim.NodeFaults{Behind: 3})

	for _, want := range []uint64{2, 5, 2} {
		if head, err := p.c.Head(t.Context()); err != nil || head.Tip.Height != want {
			t.Errorf("node %d: head %+v, %v, want %d", p.c.PreferredNode(), head, err, want)
		}

		p.c.DemoteNode("test")
	}

	failure := errors.New("node 0")
	p.c.FailNext(sim.MethodHead, failure, 1)

	if _, err := p.c.Head(t.Context()); err != nil || p.c.PreferredNode() != 1 {
		t.Errorf("%v at node %d, want an answer of node 1", err, p.c.PreferredNode())
	}

	p.c.DemoteNode("test")

	if _, err := p.c.Head(t.Context()); !errors.Is(err, failure) {
		t.Errorf("%v, want the failure that still waits at node 0", err)
	}
}

// The controls of a single node are those of node 0.
func TestLagAndPruneAreNodeZeros(t *testing.T) {
	p := newPayment(t, sim.Config{Nodes: 2})
	p.c.Lag(4)
	p.c.Prune(5)

	if head, err := p.c.Head(t.Context()); err != nil || head.Tip.Height != 1 {
		t.Errorf("head %+v, %v, want node 0's", head, err)
	}

	for height := range uint64(6) {
		if _, err := p.c.RefAt(t.Context(), height); err != nil {
			t.Errorf("height %d: %v, want node 1's block", height, err)
		}
	}
}
