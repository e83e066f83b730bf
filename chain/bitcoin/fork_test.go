package bitcoin_test

import (
	"strings"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
)

// extendChain returns blocks with n more on top, which differ from those of another salt.
func extendChain(t *testing.T, blocks []fakeBlock, n int, salt int64) []fakeBlock {
	t.Helper()

	out := append([]fakeBlock{}, blocks...)
	for range n {
		parent := out[len(out)-1]
		out = append(
			out,
			mineBlock(t, parent.Height+1, parent.Hash, makeReward(wire.NewTxOut(salt, payeeScript()))),
		)
	}

	return out
}

// problemsOf returns what is wrong with each node, in the order of configuration.
func problemsOf(d *bitcoin.Driver) (problems []string) {
	for _, report := range d.Nodes() {
		problems = append(problems, report.Why)
	}

	return problems
}

// The chain of the most proven work counts, whatever the order of the nodes. A node that follows another one is named
// and neither followed nor counted as one that agrees.
func TestNodeOnAChainOfLessWorkIsNamedAndNotCounted(t *testing.T) {
	common := makeChain(t, 3)
	long := extendChain(t, common, 10, 2_000)
	short := extendChain(t, common, 4, 3_000)

	for name, order := range map[string][2][]fakeBlock{
		"as the first":  {short, long},
		"as the second": {long, short},
	} {
		t.Run(name, func(t *testing.T) {
			first, second, third := newFake(t), newFake(t), newFake(t)
			serveTip(t, first, order[0])
			serveTip(t, second, order[1])
			serveTip(t, third, long)

			config := first.config()
			config.RPCs = []string{second.URL, third.URL}
			d := newDriver(t, config)

			loser := 0
			if name == "as the second" {
				loser = 1
			}

			for range 2 {
				if head, err := d.Head(t.Context()); err != nil || head.Tip.Hash != long[12].Hash {
					t.Errorf("head %+v, %v; want block %s", head, err, long[12].Hash)
				}
			}

			for i, problem := range problemsOf(d) {
				if named := strings.Contains(problem, "from block 4 on"); named != (i == loser) {
					t.Errorf("node %d: %q", i, problem)
				}
			}

			err := d.Check(t.Context())
			mustCode(t, "Check", err, fault.Unavailable, "node_other_chain")

			// Nothing is read of it, and it does not agree.
			blocks, err := d.Blocks(t.Context(), 4, 4)
			if err != nil || blocks[0].Hash != long[3].Hash {
				t.Errorf("block 4 is %+v, %v", blocks, err)
			}

			ours := chain.Ref{Height: 5, Hash: long[4].Hash}
			if _, err := d.AgreedBlock(t.Context(), ours, nil); err != nil {
				t.Errorf("with two nodes on the chain of most work: %v", err)
			}

			third.Close()

			if _, err := d.AgreedBlock(
				t.Context(),
				chain.Ref{Height: 5, Hash: short[4].Hash},
				nil,
			); err == nil {
				t.Error("a block of less work is confirmed")
			}
		})
	}
}

// A node that returns to the chain of most work counts again, also where the branch that it was on overtakes.
func TestNodeThatReturnsToTheChainOfMostWorkCounts(t *testing.T) {
	common := makeChain(t, 3)
	long := extendChain(t, common, 6, 2_000)
	short := extendChain(t, common, 2, 3_000)

	first, second := newFake(t), newFake(t)
	serveTip(t, first, long)
	serveTip(t, second, short)

	config := first.config()
	config.RPCs = []string{second.URL}
	d := newDriver(t, config)

	head := func(want fakeBlock, lost ...bool) {
		t.Helper()

		if head, err := d.Head(t.Context()); err != nil || head.Tip.Hash != want.Hash {
			t.Errorf("head %+v, %v; want %d", head.Tip, err, want.Height)
		}

		for i, problem := range problemsOf(d) {
			if (problem != "") != lost[i] {
				t.Errorf("node %d: %q", i, problem)
			}
		}
	}

	head(long[8], false, true)

	serveTip(t, second, long[:8])
	head(long[8], false, false)

	overtakes := extendChain(t, short, 8, 3_000)
	serveTip(t, second, overtakes)
	head(overtakes[12], true, false)

	serveTip(t, first, overtakes)
	head(overtakes[12], false, false)

	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Forks of a block or two happen by themselves: nobody is named for them. Longer ones of equal work are.
func TestForkOfEqualWorkIsNamedWhenItLasts(t *testing.T) {
	for blocks, named := range map[int]bool{1: false, 3: false, 4: true} {
		common := makeChain(t, 3)
		first, second := newFake(t), newFake(t)
		serveTip(t, first, extendChain(t, common, blocks, 2_000))
		serveTip(t, second, extendChain(t, common, blocks+1, 3_000))

		config := first.config()
		config.RPCs = []string{second.URL}
		d := newDriver(t, config)

		if head, err := d.Head(t.Context()); err != nil || head.Tip.Height != uint64(3+blocks) {
			t.Errorf("head %+v, %v", head, err)
		}

		if problem := problemsOf(d)[1]; (problem != "") != named {
			t.Errorf("%d blocks on both sides: %q", blocks, problem)
		}
	}
}

// Work that a node only claims moves nobody: its headers have to prove it.
func TestClaimedWorkDoesNotCount(t *testing.T) {
	common := makeChain(t, 3)
	honest := extendChain(t, common, 2, 2_000)
	claimed := extendChain(t, common, 20, 3_000)
	claimed[10].Nonce++ // it has no work, and the next one does not link

	first, second := newFake(t), newFake(t)
	serveTip(t, first, honest)
	serveTip(t, second, claimed)

	config := first.config()
	config.RPCs = []string{second.URL}
	d := newDriver(t, config)

	if head, err := d.Head(t.Context()); err != nil || head.Tip.Hash != honest[4].Hash {
		t.Errorf("head %+v, %v", head, err)
	}

	if problems := problemsOf(d); problems[0] != "" || problems[1] == "" {
		t.Errorf("the nodes: %q", problems)
	}
}

// A node has the blocks that the configuration pins.
func TestNodeHasThePinnedBlocks(t *testing.T) {
	common := makeChain(t, 3)
	ours, theirs := extendChain(t, common, 2, 2_000), extendChain(t, common, 4, 3_000)

	for name, c := range map[string]struct {
		blocks []fakeBlock
		word   error
		code   string
	}{
		"the pinned block":       {blocks: ours},
		"another block":          {theirs, fault.Stopped, "chain_id_mismatch"},
		"not that far":           {common, fault.Unavailable, "node_behind"},
		"only its genesis block": {nil, fault.Unavailable, "node_behind"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)

			if c.blocks == nil {
				serveChain(t, f)
			} else {
				serveTip(t, f, c.blocks)
			}

			config := f.config()
			config.Pinned = []chain.Ref{{Height: 4, Hash: ours[3].Hash}}
			d := newDriver(t, config)

			mustCode(t, "Check", d.Check(t.Context()), c.word, c.code)

			if _, err := d.Head(t.Context()); (err == nil) != (c.word == nil) {
				t.Errorf("Head: %v", err)
			}

			if problem := problemsOf(d)[0]; (problem == "") != (c.word == nil) {
				t.Errorf("it says %q", problem)
			}
		})
	}

	config := newFake(t).config()
	config.Pinned = []chain.Ref{{Height: 4, Hash: "00"}}

	_, err := bitcoin.NewDriver(config)
	mustCode(t, "a hash that is none", err, fault.Invalid, "config_invalid")
}

// What a node says of itself is shown: its version, and its warnings in both forms.
func TestNodeIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		warnings any
		want     string
	}{
		"none":             {[]string{}, ""},
		"a list":           {[]string{"unknown new rules activated (versionbit 4)"}, "unknown new rules"},
		"a text":           {"this is a pre-release test build", "pre-release"},
		"something else":   {7, ""},
		"with its secrets": {"see secret-password", "see …"},
	} {
		f := newFake(t)
		serveTip(t, f, makeChain(t, 1))
		f.on("getnetworkinfo", func(params) any { return map[string]any{"subversion": "/Satoshi:31.0.0/"} })
		f.on("getblockchaininfo", func(params) any { return map[string]any{"warnings": c.warnings} })

		d := newDriver(t, f.config())
		if err := d.Check(t.Context()); err != nil {
			t.Fatal(err)
		}

		report := d.Nodes()[0]

		got := strings.Join(report.Warnings, ";")
		if report.Version != "/Satoshi:31.0.0/" || report.Trouble != "" || !report.Since.IsZero() ||
			!strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %+v", name, report)
		}
	}
}
