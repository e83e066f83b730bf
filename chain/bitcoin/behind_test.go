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
		"two blocks behind":              {chain[:2], chain, 4},
		"one block behind":               {chain[:3], chain, 3},
		"ahead":                          {chain, chain[:2], 4},
		"the other's blocks do not link": {chain[:2], unlinked, 2},
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
	const (
		hard, four = 0x1a00ffff, 0x1a03fffc
		limit      = 0x1d00ffff
		now        = 1_700_000_000
		fortnight  = 14 * 24 * 60 * 60
	)

	mainnet, testnet4 := &chaincfg.MainNetParams, &chaincfg.TestNet4Params

	for name, test := range map[string]struct {
		params                *chaincfg.Params
		height                uint64
		header, parent, first bitcoin.Scheduled
		ok                    bool
	}{
		"the same":       {params: mainnet, height: 2017, header: at(hard, now), parent: at(hard, now), ok: true},
		"easier":         {params: mainnet, height: 2017, header: at(four, now), parent: at(hard, now)},
		"harder":         {params: mainnet, height: 2017, header: at(hard, now), parent: at(four, now)},
		"signet, easier": {params: &chaincfg.SigNetParams, height: 2017, header: at(four, now), parent: at(hard, now)},
		"a change in time": {
			mainnet,
			4032,
			at(hard, now),
			at(hard, now),
			at(hard, now-fortnight),
			true,
		},
		"a change by four": {
			mainnet,
			4032,
			at(four, now),
			at(hard, now),
			at(hard, now-9*fortnight),
			true,
		},
		"a change that the time does not ask for": {
			mainnet,
			4032,
			at(four, now),
			at(hard, now),
			at(hard, now-fortnight),
			false,
		},
		"none though the time asks for one": {
			mainnet,
			4032,
			at(hard, now),
			at(hard, now),
			at(hard, now-2*fortnight),
			false,
		},
		"a period that began with another target": {
			mainnet,
			4032,
			at(four, now),
			at(hard, now),
			at(four, now-9*fortnight),
			false,
		},
		"Testnet4, the target of the period": {
			testnet4,
			2020,
			at(hard, now+1200),
			at(limit, now),
			at(hard, now),
			true,
		},
		"Testnet4, easy after 20 minutes": {
			testnet4,
			2020,
			at(limit, now+1201),
			at(hard, now),
			at(hard, now),
			true,
		},
		"Testnet4, easy before": {
			testnet4,
			2020,
			at(limit, now+1200),
			at(hard, now),
			at(hard, now),
			false,
		},
		"Testnet4, hard although it may be easy": {
			testnet4,
			2020,
			at(hard, now+1201),
			at(hard, now),
			at(hard, now),
			false,
		},
		"Testnet4, an easy parent does not make a period easy": {
			testnet4,
			4032,
			at(hard, now),
			at(limit, now),
			at(hard, now-fortnight),
			true,
		},
		"Testnet4, a period begins before its parent": {
			testnet4,
			4032,
			at(hard, now-600),
			at(limit, now),
			at(hard, now-fortnight),
			true,
		},
		"Testnet4, long before its parent": {
			testnet4,
			4032,
			at(hard, now-601),
			at(limit, now),
			at(hard, now-fortnight),
			false,
		},
		"regtest, which changes nothing": {
			&chaincfg.RegressionNetParams,
			4032,
			at(four, now),
			at(hard, now),
			at(hard, now-9*fortnight),
			false,
		},
		"regtest, as all of its chain is": {
			&chaincfg.RegressionNetParams,
			4032,
			at(0x207fffff, now),
			at(0x207fffff, now),
			at(0, 0),
			true,
		},
	} {
		problem := bitcoin.ScheduleProblem(test.params, test.height, test.header, test.parent, test.first)
		if (problem == "") != test.ok {
			t.Errorf("%s: %q", name, problem)
		}
	}
}

func at(bits uint32, unix int64) bitcoin.Scheduled { return bitcoin.Scheduled{Bits: bits, Unix: unix} }

func TestPeriodThatDecidesATarget(t *testing.T) {
	for _, test := range []struct {
		params        *chaincfg.Params
		height, start uint64
		ok            bool
	}{
		{&chaincfg.MainNetParams, 2016, 0, true},
		{&chaincfg.MainNetParams, 4032, 2016, true},
		{&chaincfg.MainNetParams, 4033, 0, false},
		{&chaincfg.SigNetParams, 4032, 2016, true},
		{&chaincfg.TestNet4Params, 4032, 2016, true},
		{&chaincfg.TestNet4Params, 4033, 4032, true},
		{&chaincfg.TestNet4Params, 1, 0, true},
		{&chaincfg.RegressionNetParams, 4032, 0, false},
	} {
		start, ok := bitcoin.PeriodStart(test.params, test.height)
		if ok != test.ok || ok && start != test.start {
			t.Errorf("block %d of %s: from %d, %v", test.height, test.params.Name, start, ok)
		}
	}
}

// Changes of mainnet's target, and its limits. Source: Bitcoin Core, src/test/pow_tests.cpp; the last one's first
// time is made up there.
func TestPublishedRetargets(t *testing.T) {
	for _, v := range []struct {
		height      uint64
		first, last int64
		bits, want  uint32
	}{
		{2016, 1231006505, 1233061996, 0x1d00ffff, 0x1d00ffff},
		{32256, 1261130161, 1262152739, 0x1d00ffff, 0x1d00d86a},
		{68544, 1279008237, 1279297671, 0x1c05a3f4, 0x1c0168fd},
		{46368, 1263163443, 1269211443, 0x1c387f6f, 0x1d00e1fd},
	} {
		problem := func(bits uint32) string {
			return bitcoin.ScheduleProblem(
				&chaincfg.MainNetParams, v.height,
				at(bits, v.last+600), at(v.bits, v.last), at(v.bits, v.first),
			)
		}

		if got := problem(v.want); got != "" {
			t.Errorf("block %d %s", v.height, got)
		}

		for _, other := range []uint32{v.want - 1, v.want + 1} {
			if problem(other) == "" {
				t.Errorf("block %d may have a target of %x, one off", v.height, other)
			}
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
		"mainnet's block 227931":  {&chaincfg.MainNetParams, 227_931, []byte{3, 0x5b, 0x7a, 3, 7}, true},
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

		if !strings.Contains(err.Error(), "another target than") {
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
