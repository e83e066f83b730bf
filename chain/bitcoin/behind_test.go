package bitcoin_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
)

// makeChain returns linked blocks from height 1 on.
func makeChain(t *testing.T, n int) []fakeBlock {
	t.Helper()

	pay := wire.NewTxOut(1_000, payeeScript())

	blocks := []fakeBlock{makeBlock(t, 1, makeReward(pay))}
	for height := uint64(2); height <= uint64(n); height++ {
		blocks = append(blocks, mineBlock(t, height, blocks[height-2].Hash, makeReward(pay)))
	}

	return blocks
}

// serveTip makes a node serve blocks, the newest of which is its tip.
func serveTip(t *testing.T, f *fakeNode, blocks []fakeBlock) {
	t.Helper()
	serveChain(t, f, blocks...)
	f.on("getbestblockhash", func(params) any { return blocks[len(blocks)-1].Hash })
}

// A node is passed over when another one proves two blocks on top of its tip, and only then.
func TestNodeBehindAnotherIsPassedOver(t *testing.T) {
	chain := makeChain(t, 4)
	unlinked := append(chain[:2:2], mineBlock(t, 3, strings.Repeat("1", 64), makeReward()), chain[3])

	for name, test := range map[string]struct {
		first, second []fakeBlock
		want          uint64
	}{
		"two blocks behind":                  {chain[:2], chain, 4},
		"one block behind":                   {chain[:3], chain, 3},
		"ahead":                              {chain, chain[:2], 4},
		"the other's blocks do not link":     {chain[:2], unlinked, 2},
		"the other does not know its branch": {[]fakeBlock{makeBlock(t, 1, makeReward())}, chain, 1},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := newFake(t), newFake(t)
			serveTip(t, first, test.first)
			serveTip(t, second, test.second)

			config := first.config()
			config.RPCs = []string{second.URL}
			d := newDriver(t, config)

			for range 2 {
				if head, err := d.Head(t.Context()); err != nil || head.Tip.Height != test.want {
					t.Errorf("head %+v, %v, want height %d", head, err, test.want)
				}
			}
		})
	}
}

// The other node alone is not compared with anything, and a dead one is no reason to wait.
func TestDeadNodeIsNotCompared(t *testing.T) {
	first, dead := newFake(t), newFake(t)
	serveTip(t, first, makeChain(t, 2))

	config := first.config()
	config.RPCs = []string{dead.URL}
	d := newDriver(t, config)

	asked := 0

	dead.on("getblockchaininfo", func(params) any {
		asked++
		return &rpcError{-28, "Loading block index…"}
	})

	for range 3 {
		if head, err := d.Head(t.Context()); err != nil || head.Tip.Height != 2 {
			t.Errorf("head %+v, %v", head, err)
		}
	}

	if asked != 1 {
		t.Errorf("the node that does not answer was asked %d times in a row", asked)
	}
}

// A node that syncs after it was verified, as one that was restored, has no tip, and is verified anew.
func TestSyncIsLookedAtContinuously(t *testing.T) {
	f := newFake(t)
	blocks, syncing := makeChain(t, 2), false
	serveTip(t, f, blocks)
	f.on("getblockchaininfo", func(params) any { return map[string]any{"initialblockdownload": syncing} })

	d := newDriver(t, f.config())
	if _, err := d.Head(t.Context()); err != nil {
		t.Fatal(err)
	}

	syncing = true

	_, err := d.Head(t.Context())
	mustCode(t, "Head", err, fault.Unavailable, "node_syncing")
	_, err = d.Blocks(t.Context(), 1, 2)
	mustCode(t, "Blocks", err, fault.Unavailable, "node_syncing")

	syncing = false

	if read, err := d.Blocks(t.Context(), 1, 2); err != nil || len(read) != 2 {
		t.Errorf("after it synced: %d blocks, %v", len(read), err)
	}
}

func TestTargetFollowsThatOfTheParent(t *testing.T) {
	const hard, four, eight = 0x1a00ffff, 0x1a03fffc, 0x1a07fff8

	for name, test := range map[string]struct {
		params       *chaincfg.Params
		height       uint64
		bits, parent uint32
		ok           bool
	}{
		"the same":                        {&chaincfg.MainNetParams, 2017, hard, hard, true},
		"easier":                          {&chaincfg.MainNetParams, 2017, four, hard, false},
		"harder":                          {&chaincfg.MainNetParams, 2017, hard, four, false},
		"a change by four":                {&chaincfg.MainNetParams, 4032, four, hard, true},
		"a change by more":                {&chaincfg.MainNetParams, 4032, eight, hard, false},
		"a change to harder":              {&chaincfg.MainNetParams, 4032, hard, eight, true},
		"signet, easier":                  {&chaincfg.SigNetParams, 2017, four, hard, false},
		"an easy block of Testnet4":       {&chaincfg.TestNet4Params, 2017, 0x1d00ffff, hard, true},
		"regtest, which changes nothing":  {&chaincfg.RegressionNetParams, 4032, four, hard, false},
		"regtest, as all of its chain is": {&chaincfg.RegressionNetParams, 4032, 0x207fffff, 0x207fffff, true},
	} {
		problem := bitcoin.ScheduleProblem(test.params, test.height, test.bits, test.parent)
		if (problem == "") != test.ok {
			t.Errorf("%s: %q", name, problem)
		}
	}
}

func TestCoinbaseBeginsWithItsHeight(t *testing.T) {
	for name, test := range map[string]struct {
		params *chaincfg.Params
		height uint64
		script []byte
		ok     bool
	}{
		"a small number":          {&chaincfg.RegressionNetParams, 9, []byte{0x59, 0}, true},
		"a small number, as data": {&chaincfg.RegressionNetParams, 9, []byte{1, 9}, false},
		"of the main network":     {&chaincfg.MainNetParams, 900_001, []byte{3, 0xa1, 0xbb, 0x0d, 7}, true},
		"another height":          {&chaincfg.MainNetParams, 900_002, []byte{3, 0xa1, 0xbb, 0x0d, 7}, false},
		"nothing":                 {&chaincfg.MainNetParams, 900_001, nil, false},
		"before the rule":         {&chaincfg.MainNetParams, 227_930, []byte{1}, true},
		"from the rule on":        {&chaincfg.MainNetParams, 227_931, []byte{1}, false},
		"the genesis block":       {&chaincfg.RegressionNetParams, 0, []byte{1}, true},
	} {
		coinbase := makeReward()
		coinbase.TxIn[0].SignatureScript = test.script

		if problem := bitcoin.HeightProblem(test.params, test.height, coinbase); (problem == "") != test.ok {
			t.Errorf("%s: %q", name, problem)
		}
	}
}

// A block with work of its own, of another target than its parent's, is not read, and the parent's header is
// that of its hash.
func TestBlockOfAnotherTargetIsNotRead(t *testing.T) {
	blocks := makeChain(t, 2)

	easy := &blocks[1]
	easy.Bits = "207ffffe"

	for easy.Hash = ""; easy.Hash == "" || easy.Hash >= "7f"; easy.Nonce++ {
		raw, err := hex.DecodeString(easy.raw(t)[:160])
		if err != nil {
			t.Fatal(err)
		}

		easy.Hash = chainhash.DoubleHashH(raw).String()
	}

	easy.Nonce--

	f := newFake(t)
	serveTip(t, f, blocks)

	for _, from := range []uint64{1, 2} {
		_, err := newDriver(t, f.config()).Blocks(t.Context(), from, 2)
		mustCode(t, "another target", err, fault.Unavailable, "node_unavailable")

		if !strings.Contains(err.Error(), "another target") {
			t.Errorf("from %d: %v", from, err)
		}
	}

	f.on("getblockheader", func(params) any {
		parent := chaincfg.RegressionNetParams.GenesisBlock.Header
		parent.Nonce++

		return rawHeader(parent)
	})

	_, err := newDriver(t, f.config()).Blocks(t.Context(), 1, 1)
	mustCode(t, "a header of another hash", err, fault.Unavailable, "node_unavailable")
}
