package evm_test

// What a scan makes of a block that does not match its header, or that cannot be checked.

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/fault"
)

// liar changes what a node shows of block 3, without the work that would make it consistent.
type liar struct {
	name string
	lie  func(n *fakeNode, b *fakeBlock)
	// refused is part of what the error says of a single node that lies so; empty when the block is
	// accepted as unverified, with the reason unverified.
	refused, unverified string
}

func logsOf(b *fakeBlock) []jsonObject { return b.receipts[0]["logs"].([]jsonObject) }

// rebloom makes the header's bloom that of the receipts.
func rebloom(b *fakeBlock) {
	gas := uint64(0)
	b.header["logsBloom"] = sealReceipt(b.receipts[0], types.DynamicFeeTxType, &gas).Bloom
}

// hide makes the header one that go-ethereum cannot hash.
func hide(b *fakeBlock) { b.header["epochProof"] = "0x01" }

// liars are changes of one block.
var liars = []liar{
	{
		name:    "drops a log",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.receipts[0]["logs"] = logsOf(b)[:1] },
		refused: "receipts root",
	},
	{
		name: "drops a log and its bloom",
		lie: func(_ *fakeNode, b *fakeBlock) {
			b.receipts[0]["logs"] = logsOf(b)[:1]
			rebloom(b)
		},
		refused: "header does not hash",
	},
	{
		name: "drops a log, its bloom and the receipts root",
		lie: func(n *fakeNode, b *fakeBlock) {
			b.receipts[0]["logs"] = logsOf(b)[:1]
			hash := b.hash()
			b.seal(common.HexToHash(b.header["parentHash"].(string)), n.chainID)
			b.header["hash"], b.txs[0]["blockHash"], b.receipts[0]["blockHash"] = hash, hash, hash
		},
		refused: "header does not hash",
	},
	{
		name:    "fails a transaction",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.receipts[0]["status"] = "0x0" },
		refused: "receipts root",
	},
	{
		name:    "raises an amount",
		lie:     func(_ *fakeNode, b *fakeBlock) { logsOf(b)[1]["data"] = common.BigToHash(common.Big256).Hex() },
		refused: "receipts root",
	},
	{
		name: "changes a receiver",
		lie: func(_ *fakeNode, b *fakeBlock) {
			topics := logsOf(b)[1]["topics"].([]string)
			logsOf(b)[1]["topics"] = []string{topics[0], topics[1], topics[1]}
		},
		refused: "receipts root",
	},
	{
		name:    "changes gas",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.receipts[0]["cumulativeGasUsed"] = "0x1" },
		refused: "receipts root",
	},
	{
		name:    "raises a value",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.txs[0]["value"] = "0xffff" },
		refused: "does not have that hash",
	},
	{
		name:    "changes the receiver of coin",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.txs[0]["to"] = payer.Hex() },
		refused: "does not have that hash",
	},
	{
		name:    "changes a nonce",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.txs[0]["nonce"] = "0x9" },
		refused: "does not have that hash",
	},
	{
		name:    "changes a sender",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.txs[0]["from"] = payee.Hex() },
		refused: "not signed by the sender",
	},
	{
		name: "replaces a transaction",
		lie: func(n *fakeNode, b *fakeBlock) {
			b.txs[0]["value"] = "0xffff"
			sealTx(b.txs[0], n.chainID)
			b.receipts[0]["transactionHash"] = b.txs[0]["hash"]
		},
		refused: "transactions root",
	},
	{
		name:    "leaves a transaction out",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.txs, b.receipts = b.txs[:0], b.receipts[:0] },
		refused: "left out",
	},
	{
		name: "leaves a transaction out with its root",
		lie: func(_ *fakeNode, b *fakeBlock) {
			b.txs, b.receipts = b.txs[:0], b.receipts[:0]
			b.header["transactionsRoot"] = types.EmptyTxsHash.Hex()
		},
		refused: "header does not hash",
	},
	{
		name:    "changes a header field",
		lie:     func(_ *fakeNode, b *fakeBlock) { b.header["timestamp"] = "0x1" },
		refused: "header does not hash",
	},
	{
		name:    "leaves a header field out",
		lie:     func(_ *fakeNode, b *fakeBlock) { delete(b.header, "stateRoot") },
		refused: "header cannot be read",
	},
	{
		name: "hides a change behind an unknown header field",
		lie: func(_ *fakeNode, b *fakeBlock) {
			b.header["timestamp"] = "0x1"
			hide(b)
		},
		unverified: "unknown header fields epochProof",
	},
	{
		name:       "calls a transaction one of an unknown type",
		lie:        func(_ *fakeNode, b *fakeBlock) { b.txs[0]["type"], b.txs[0]["value"] = "0x55", "0xffff" },
		unverified: "unknown transaction type 0x55",
	},
	{
		name: "hides a lost log, with everything else made to fit",
		lie: func(n *fakeNode, b *fakeBlock) {
			hash := b.hash()
			b.receipts[0]["logs"] = logsOf(b)[:1]
			b.seal(common.HexToHash(b.header["parentHash"].(string)), n.chainID)
			b.header["hash"], b.txs[0]["blockHash"], b.receipts[0]["blockHash"] = hash, hash, hash
			hide(b)
		},
		unverified: "unknown header fields epochProof",
	},
	{
		name: "hides an invented log",
		lie: func(_ *fakeNode, b *fakeBlock) {
			logsOf(b)[1]["address"] = payer.Hex()
			hide(b)
		},
		refused: "receipts root",
	},
}

// Each lie of one node is refused, or the block is said to be unverified; beside an honest node the
// honest one's block counts.
func TestChangedBlocksAreNotBelieved(t *testing.T) {
	for _, c := range liars {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lying, honest := newFakeNode(8), newFakeNode(8)
				c.lie(lying, &lying.blocks[3])

				blocks, err := driverOf(t, lying).Blocks(t.Context(), 2, 5)

				switch {
				case c.refused == "" && (err != nil || len(blocks) < 2):
					t.Fatalf("%d blocks, %v: reading must go on", len(blocks), err)
				case c.refused == "" && !strings.Contains(blocks[1].Unverified, c.unverified):
					t.Errorf("unverified: %q, want %q", blocks[1].Unverified, c.unverified)
				case c.refused != "":
					wantFault(t, err, fault.Unavailable, "node_unavailable")

					if !strings.Contains(err.Error(), c.refused) ||
						!strings.Contains(err.Error(), "block 3") ||
						!strings.Contains(err.Error(), "node a") {
						t.Errorf("%v does not name node, block and check (%s)", err, c.refused)
					}
				}

				want, err := driverOf(t, honest).Blocks(t.Context(), 2, 5)
				if err != nil {
					t.Fatal(err)
				}

				both := fakeDriver(t, fakeTransport{"a": lying, "b": honest}, []string{"a", "b"})

				got, err := both.Blocks(t.Context(), 2, 5)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("beside an honest node: %+v, %v", got, err)
				}

				for _, b := range want {
					if b.Unverified != "" {
						t.Errorf("the honest block %d is unverified: %s", b.Height, b.Unverified)
					}
				}

				honest.resetRequests()

				if _, err := both.Blocks(
					t.Context(),
					6,
					6,
				); err != nil ||
					honest.count("eth_getBlockByNumber") != 1 {
					t.Errorf("%v; the node that lied is still preferred: %v", err, honest.requests)
				}
			})
		})
	}
}

// A field beside the header does no harm while the header still hashes to the block's hash.
func TestFieldBesideTheHeaderIsVerified(t *testing.T) {
	n := newFakeNode(4)
	hide(&n.blocks[3])

	blocks, err := driverOf(t, n).Blocks(t.Context(), 2, 4)
	if err != nil || len(blocks) != 3 || blocks[1].Unverified != "" {
		t.Errorf("%+v, %v", blocks, err)
	}
}

// After an upgrade all nodes show what go-ethereum does not know yet: reading goes on, and says so.
func TestUpgradesDoNotStopReading(t *testing.T) {
	for reason, upgrade := range map[string]func(n *fakeNode){
		"unknown header fields epochProof": func(n *fakeNode) {
			hide(&n.blocks[3])
			n.rename(3)
		},
		"unknown transaction type 0x55": func(n *fakeNode) {
			n.blocks[3].txs[0]["raw"], n.blocks[3].txs[0]["type"] = hexutil.Bytes{0x55, 1, 2}, "0x55"
			n.seal(3)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			first, second := newFakeNode(6), newFakeNode(6)
			upgrade(first)
			upgrade(second)
			driver := fakeDriver(t, fakeTransport{"a": first, "b": second}, []string{"a", "b"})

			blocks, err := driver.Blocks(t.Context(), 2, 5)
			if err != nil {
				t.Fatal(err)
			}

			wantHeights(t, blocks, 2, 5)

			if blocks[1].Unverified != reason || blocks[2].Unverified != "" || len(blocks[1].Transfers) != 2 {
				t.Errorf("%+v and %+v", blocks[1], blocks[2])
			}

			if second.count("eth_getBlockByNumber") != 4 {
				t.Errorf("the second node was asked %v", second.requests)
			}

			// Its receipts stay verified by their root where the header still can be.
			second.update(func(n *fakeNode) { n.blocks[3].receipts[0]["status"] = "0x0" })

			_, err = driver.Blocks(t.Context(), 2, 5)

			if reason != "unknown transaction type 0x55" { // the second one contradicts its own root
				return
			}

			wantFault(t, err, fault.Unavailable, "nodes_disagree")
		})
	}
}

// An unverified block is compared with the node's logs and count, which it may refuse to give.
func TestUnverifiedBlocksAreCrossChecked(t *testing.T) {
	upgraded := func() *fakeNode {
		n := newFakeNode(6)
		hide(&n.blocks[3])
		n.rename(3)

		return n
	}

	for name, c := range map[string]struct {
		answer  func(n *fakeNode, c rpcCall) (any, bool)
		refused string
		reason  string
	}{
		"another count": {
			answer: func(_ *fakeNode, c rpcCall) (any, bool) {
				return "0x2", c.Method == "eth_getBlockTransactionCountByHash"
			},
			refused: "has 2 transactions, it gave 1",
		},
		"another log": {
			answer: func(n *fakeNode, c rpcCall) (any, bool) {
				log := maps.Clone(logsOf(&n.blocks[3])[1])
				log["data"] = common.BigToHash(common.Big1).Hex()

				return []jsonObject{log}, c.Method == "eth_getLogs"
			},
			refused: "has transfers that its receipts leave out",
		},
		"no log": {
			answer:  func(_ *fakeNode, c rpcCall) (any, bool) { return []jsonObject{}, c.Method == "eth_getLogs" },
			refused: "does not have all transfers of its receipts",
		},
		"refusals": {
			answer: func(_ *fakeNode, c rpcCall) (any, bool) {
				refused := c.Method == "eth_getLogs" || c.Method == "eth_getBlockTransactionCountByHash"
				return rpcError{-32601, "no such method"}, refused
			},
			reason: "unknown header fields epochProof; the node does not count a block's transactions; " +
				"the node does not give logs by block",
		},
		"null": {
			answer: func(_ *fakeNode, c rpcCall) (any, bool) {
				return nil, c.Method == "eth_getLogs" || c.Method == "eth_getBlockTransactionCountByHash"
			},
			reason: "unknown header fields epochProof; the node does not count a block's transactions; " +
				"the node does not give logs by block",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := upgraded()
				n.answer = func(call rpcCall) (any, bool) { return c.answer(n, call) }

				blocks, err := driverOf(t, n).Blocks(t.Context(), 2, 4)
				if c.refused == "" {
					if err != nil || blocks[1].Unverified != c.reason {
						t.Fatalf("%+v, %v", blocks, err)
					}

					return
				}

				wantFault(t, err, fault.Unavailable, "node_unavailable")

				if !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v, want %q", err, c.refused)
				}
			})
		})
	}
}

// Whether blocks of a network outside the catalogue are Ethereum's is known once one verified: until
// then a block that does not is no proof against the node. On the catalogue's Ethereum it is.
func TestFirstBlockOfAnUnknownNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(chainID uint64) ([]chain.Block, error) {
			n := newFakeNode(4)
			n.chainID = chainID
			n.seal(0)
			n.blocks[3].receipts[0]["status"] = "0x0"

			return driverOf(
				t,
				n,
				func(c *evm.Config) { c.Network.ChainID = chainID },
			).Blocks(t.Context(), 3, 3)
		}

		blocks, err := read(fakeChainID)
		if err != nil || blocks[0].Unverified != "its receipts are not those of its receipts root" {
			t.Errorf("%+v, %v", blocks, err)
		}

		_, err = read(evm.Ethereum.ChainID)
		wantFault(t, err, fault.Unavailable, "node_unavailable")
	})
}

// Bor's state-sync transaction from before PIP-74 is in no root; one of after is in both, and its JSON
// does not hold its data.
func TestPolygonStateSync(t *testing.T) {
	polygon := func(height int, change func(b *fakeBlock)) *fakeNode {
		n := newFakeNode(5)
		n.chainID = evm.Polygon.ChainID
		n.seal(0)
		change(&n.blocks[height])

		return n
	}
	read := func(n *fakeNode) chain.Block {
		t.Helper()

		driver := driverOf(t, n, func(c *evm.Config) { c.Network.ChainID = evm.Polygon.ChainID })

		blocks, err := driver.Blocks(t.Context(), 2, 4)
		if err != nil {
			t.Fatal(err)
		}

		return blocks[1]
	}
	sync := func(b *fakeBlock, hash string) (tx, receipt jsonObject) {
		tx = jsonObject{
			"hash":      hash,
			"blockHash": b.hash(),
			"from":      common.Address{}.Hex(),
			"to":        common.Address{}.Hex(),
			"value":     "0xffff", // no root holds it: it must not count
			"nonce":     "0x0",
			"type":      "0x0",
		}
		receipt = jsonObject{
			"transactionHash":   hash,
			"blockHash":         b.hash(),
			"blockNumber":       b.header["number"],
			"status":            "0x1",
			"gasUsed":           "0x0",
			"cumulativeGasUsed": "0x0",
			"logs":              []jsonObject{logOf(common.HexToAddress(string(fakeToken.Contract)), 9, 77)},
		}

		return tx, receipt
	}

	outside := read(polygon(3, func(b *fakeBlock) {
		hash := crypto.Keccak256Hash(
			[]byte("matic-bor-receipt-"), []byte{0, 0, 0, 0, 0, 0, 0, 3}, common.HexToHash(b.hash()).Bytes(),
		)
		tx, receipt := sync(b, hash.Hex())
		b.txs, b.receipts = append(b.txs, tx), append(b.receipts, receipt)
	}))
	if outside.Unverified != "the state-sync transaction is outside the header's roots" ||
		len(
			outside.Transfers,
		) != 3 || outside.Transfers[2].Amount != chain.Units(77) || !outside.Spent[1].Shared {
		t.Errorf("before PIP-74: %+v", outside)
	}

	inside := func(raw bool) chain.Block {
		n := polygon(3, func(b *fakeBlock) {
			tx, receipt := sync(b, "")
			tx["type"], tx["raw"] = "0x7f", hexutil.Bytes{0x7f, 0xc0}
			b.txs, b.receipts = append(b.txs, tx), append(b.receipts, receipt)
		})
		n.seal(3)

		n.answer = func(c rpcCall) (any, bool) {
			return rpcError{-32601, "no such method"}, !raw && c.Method == "eth_getRawTransactionByHash"
		}

		return read(n)
	}
	if b := inside(true); b.Unverified != "" || len(b.Transfers) != 3 || !b.Spent[1].Shared {
		t.Errorf("after PIP-74: %+v", b)
	}

	if b := inside(
		false,
	); !strings.Contains(b.Unverified, "0x7f were not given as bytes") ||
		len(b.Transfers) != 3 {
		t.Errorf("after PIP-74, without the bytes: %+v", b)
	}
}

// A block costs two calls, the whole range one request; one that does not verify, two calls more.
func TestCallsPerBlock(t *testing.T) {
	n := newFakeNode(9)
	hide(&n.blocks[9])
	n.rename(9)

	driver := driverOf(t, n)
	if _, err := driver.Blocks(t.Context(), 1, 1); err != nil { // the chain id is known now
		t.Fatal(err)
	}

	for _, c := range []struct {
		from, to uint64
		want     [][]string
	}{
		{2, 4, [][]string{{
			"eth_getBlockByNumber", "eth_getBlockByNumber", "eth_getBlockByNumber",
			"eth_getBlockReceipts", "eth_getBlockReceipts", "eth_getBlockReceipts",
		}}},
		{9, 9, [][]string{
			{"eth_getBlockByNumber", "eth_getBlockReceipts"},
			{"eth_getBlockTransactionCountByHash", "eth_getLogs"},
		}},
	} {
		n.resetRequests()

		if _, err := driver.Blocks(
			t.Context(),
			c.from,
			c.to,
		); err != nil ||
			!reflect.DeepEqual(n.requests, c.want) {
			t.Errorf("blocks %d to %d: %v, %v", c.from, c.to, n.requests, err)
		}
	}
}

// Receipts that are read beside blocks, by height, are those of the blocks. Where they are not, or cannot be had so,
// they are read by the blocks' hashes, and nothing is said against the node.
func TestReceiptsBesideBlocksAreOfTheBlocks(t *testing.T) {
	beside := func(c rpcCall) bool { return c.Method == "eth_getBlockReceipts" && len(c.param(0)) < 66 }
	always := func(answer any) func(n *fakeNode) {
		return func(n *fakeNode) { n.answer = func(c rpcCall) (any, bool) { return answer, beside(c) } }
	}
	tooLarge := func(n *fakeNode) {
		n.http = func(w http.ResponseWriter, calls []rpcCall) bool {
			if !slices.ContainsFunc(calls, beside) {
				return false
			}

			w.WriteHeader(http.StatusRequestEntityTooLarge)

			return true
		}
	}
	asIs := func(*fakeNode) {}

	for name, c := range map[string]struct {
		before uint64 // the block that is read first
		blocks uint64 // how many are read after it
		node   func(n *fakeNode)
		// requests are how many those take, and then another one, with receipts calls for receipts.
		requests, then, receipts int
	}{
		"they are":                    {2, 3, asIs, 1, 1, 1},
		"the block before had none":   {0, 3, asIs, 2, 1, 1},
		"of another block":            {2, 3, always(newFakeNode(9).blocks[9].receipts), 2, 2, 2},
		"none":                        {2, 3, always([]any{}), 2, 2, 2},
		"no list":                     {2, 3, always("0x1"), 2, 2, 2},
		"null":                        {2, 3, always(nil), 2, 2, 1},
		"refused":                     {2, 3, always(badParams), 2, 2, 1},
		"more than one request holds": {2, 5, asIs, 2, 1, 1},
		"more than the node sends":    {2, 1, tooLarge, 5, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode(9)
			driver := driverOf(t, n, func(c *evm.Config) { c.MaxBatch = 8 })

			if _, err := driver.Head(t.Context()); err != nil {
				t.Fatal(err)
			}

			if _, err := driver.Blocks(t.Context(), c.before, c.before); err != nil {
				t.Fatal(err)
			}

			c.node(n)

			for _, read := range []struct {
				from, to uint64
				requests int
			}{
				{c.before + 1, c.before + c.blocks, c.requests},
				{c.before + c.blocks + 1, c.before + c.blocks + 1, c.then},
			} {
				n.resetRequests()

				blocks, err := driver.Blocks(t.Context(), read.from, read.to)
				if err != nil {
					t.Fatal(err)
				}

				wantHeights(t, blocks, read.from, read.to)

				for _, block := range blocks {
					if block.Unverified != "" || len(block.Transfers) != 2 {
						t.Errorf("block %d: %+v", block.Height, block)
					}
				}

				if len(n.requests) != read.requests {
					t.Errorf("blocks %d to %d took %v", read.from, read.to, n.requests)
				}
			}

			if asked := n.count("eth_getBlockReceipts"); asked != c.receipts {
				t.Errorf("of one more block receipts were asked for %d times", asked)
			}

			if state := driver.Nodes()[0]; state.Trouble != "" {
				t.Errorf("the node is %+v", state)
			}
		})
	}
}

// A payment confirms at a block that two nodes have.
func TestAgreedBlockIsOneThatTwoNodesHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main, same, behind, fork := newFakeNode(9), newFakeNode(9), newFakeNode(4), newFakeNode(4)
		for range 5 {
			fork.extend("other")
		}

		at := chain.Ref{Height: 7, Hash: main.blocks[7].hash()}
		dead := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) })

		for name, c := range map[string]struct {
			nodes []http.Handler
			word  error
			code  string
		}{
			"one node":                          {[]http.Handler{main}, nil, ""},
			"two that agree":                    {[]http.Handler{main, same}, nil, ""},
			"the only one has another":          {[]http.Handler{fork}, fault.NotFound, "block_unknown"},
			"both have another":                 {[]http.Handler{fork, fork}, fault.NotFound, "block_unknown"},
			"the preferred one has another":     {[]http.Handler{fork, main}, fault.Unavailable, "nodes_disagree"},
			"the second one has another":        {[]http.Handler{main, fork}, fault.Unavailable, "nodes_disagree"},
			"the second one is behind":          {[]http.Handler{main, behind}, fault.Unavailable, "nodes_missing"},
			"the second one is down":            {[]http.Handler{main, dead}, fault.Unavailable, "nodes_missing"},
			"the preferred one is down":         {[]http.Handler{dead, main}, fault.Unavailable, "nodes_missing"},
			"the preferred of three is down":    {[]http.Handler{dead, main, same}, nil, ""},
			"the second of three is behind":     {[]http.Handler{main, behind, same}, nil, ""},
			"both of the others of three agree": {[]http.Handler{fork, main, same}, nil, ""},
		} {
			transport, hosts := fakeTransport{}, []string{"a", "b", "c"}[:len(c.nodes)]
			for i, host := range hosts {
				transport[host] = c.nodes[i]
			}

			_, err := fakeDriver(t, transport, hosts).AgreedBlock(t.Context(), at, nil)
			if c.word == nil {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}

				continue
			}

			wantFault(t, err, c.word, c.code)
		}
	})
}

// A count of transactions is one that two nodes share at the height that is asked for.
func TestAgreedNonceIsWhatTwoNodesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counting := func(tip int, count string) http.Handler {
			node := newFakeNode(tip)
			node.answer = func(c rpcCall) (any, bool) {
				return count, c.Method == "eth_getTransactionCount" && c.param(1) == "0x7"
			}

			return node
		}

		right, behind := counting(9, "0x3"), counting(6, "0x3")
		more, none := counting(9, "0x4"), counting(9, "0x0")

		for name, c := range map[string]struct {
			nodes []http.Handler
			word  error
			code  string
		}{
			"one node":                    {[]http.Handler{right}, nil, ""},
			"two that agree":              {[]http.Handler{right, counting(8, "0x3")}, nil, ""},
			"the preferred counts more":   {[]http.Handler{more, right}, fault.Unavailable, "nodes_disagree"},
			"the second counts none":      {[]http.Handler{right, none}, fault.Unavailable, "nodes_disagree"},
			"the second is behind":        {[]http.Handler{right, behind}, fault.Unavailable, "nodes_missing"},
			"two of three count the same": {[]http.Handler{more, right, counting(9, "0x3")}, nil, ""},
		} {
			transport, hosts := fakeTransport{}, []string{"a", "b", "c"}[:len(c.nodes)]
			for i, host := range hosts {
				transport[host] = c.nodes[i]
			}

			at := chain.Ref{Height: 7}

			count, err := fakeDriver(t, transport, hosts).AgreedNonce(t.Context(), sender().Address, at)
			if c.word == nil {
				if err != nil || count != 3 {
					t.Errorf("%s: %d, %v", name, count, err)
				}

				continue
			}

			wantFault(t, err, c.word, c.code)
		}
	})
}

// AgreedBlock verifies as Blocks does: a node that lies is passed over.
func TestAgreedBlockIsVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main, lying, honest := newFakeNode(6), newFakeNode(6), newFakeNode(6)
		lying.blocks[3].receipts[0]["logs"] = logsOf(&lying.blocks[3])[:1]
		driver := fakeDriver(t, fakeTransport{"a": main, "b": lying, "c": honest}, []string{"a", "b", "c"})

		want, err := driver.Blocks(t.Context(), 3, 3)
		if err != nil {
			t.Fatal(err)
		}

		for range 3 { // whichever is asked first
			got, err := driver.AgreedBlock(t.Context(), want[0].Ref, []string{want[0].Transfers[0].TxHash})
			if err != nil || !reflect.DeepEqual(got, want[0]) {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}

// Facts of a transaction in a block come from the verified block, whatever the node says about its hash.
func TestLookupsReadTheVerifiedBlock(t *testing.T) {
	for name, lie := range map[string]func(n *fakeNode){
		"a receipt without its logs": func(n *fakeNode) { n.blocks[3].receipts[0]["logs"] = []jsonObject{} },
		"a failed transaction":       func(n *fakeNode) { n.blocks[3].receipts[0]["status"] = "0x0" },
		"another value":              func(n *fakeNode) { n.blocks[3].txs[0]["value"] = "0xffff" },
		"another block": func(n *fakeNode) {
			tx := maps.Clone(n.blocks[3].txs[0])
			tx["blockHash"], tx["blockNumber"] = n.blocks[4].hash(), "0x4"
			n.answer = func(c rpcCall) (any, bool) { return tx, c.Method == "eth_getTransactionByHash" }
		},
		"a block that is not canonical": func(n *fakeNode) {
			tx := maps.Clone(n.blocks[3].txs[0])
			tx["blockHash"] = common.MaxHash.Hex()
			n.answer = func(c rpcCall) (any, bool) { return tx, c.Method == "eth_getTransactionByHash" }
		},
		"a pooled transaction with another value": func(n *fakeNode) {
			tx := maps.Clone(n.blocks[3].txs[0])
			tx["blockHash"], tx["value"] = nil, "0xffff"
			n.answer = func(c rpcCall) (any, bool) { return tx, c.Method == "eth_getTransactionByHash" }
		},
		"a pooled transaction of another sender": func(n *fakeNode) {
			tx := maps.Clone(n.blocks[3].txs[0])
			tx["blockHash"], tx["from"] = nil, payee.Hex()
			n.answer = func(c rpcCall) (any, bool) { return tx, c.Method == "eth_getTransactionByHash" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lying, honest := newFakeNode(6), newFakeNode(6)
				hash := honest.blocks[3].txs[0]["hash"].(string)

				alone := driverOf(t, lying)
				both := fakeDriver(t, fakeTransport{"a": lying, "b": honest}, []string{"a", "b"})

				for _, driver := range []*evm.Driver{alone, both} { // what holds on this network is known
					if _, err := driver.Blocks(t.Context(), 1, 2); err != nil {
						t.Fatal(err)
					}
				}

				lie(lying)

				_, err := alone.Transaction(t.Context(), hash)
				wantFault(t, err, fault.Unavailable, "node_unavailable")

				_, err = alone.Status(t.Context(), chain.Signed{TxHash: hash})
				wantFault(t, err, fault.Unavailable, "node_unavailable")

				found, err := both.Transaction(t.Context(), hash)
				if err != nil || found.Failed || len(found.Transfers) != 2 || found.Block.Height != 3 {
					t.Errorf("%+v, %v", found, err)
				}

				st, err := both.Status(t.Context(), chain.Signed{TxHash: hash})
				if err != nil || st.State != chain.TxIncluded || st.Reverted || len(st.Transfers) != 2 {
					t.Errorf("%+v, %v", st, err)
				}
			})
		})
	}
}

// A receipt's gas price follows from the transaction and the base fee, not from what the node says.
func TestFeeFollowsFromTheBlock(t *testing.T) {
	n := newFakeNode(4)
	n.chainID = evm.Ethereum.ChainID
	n.seal(0)
	n.blocks[3].receipts[0]["effectiveGasPrice"], n.blocks[3].receipts[0]["gasUsed"] = "0x1", "0x1"
	driver := driverOf(t, n, func(c *evm.Config) { c.Network.ChainID = evm.Ethereum.ChainID })

	st, err := driver.Status(t.Context(), chain.Signed{TxHash: n.blocks[3].txs[0]["hash"].(string)})
	if err != nil || st.Fee != gwei(21000) {
		t.Errorf("%+v, %v, want a fee of %s", st, err, gwei(21000))
	}
}

// A finality tag that a node refuses for another reason than its absence is no "no finality".
func TestRefusedFinalityTagIsNoAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for code, absent := range map[int]bool{-32000: true, -32602: true, -39001: true, -32603: false, 4444: false} {
			n := newFakeNode(10)
			n.answer = func(c rpcCall) (any, bool) {
				tag := c.param(0)
				return rpcError{code, "no"}, slices.Contains([]string{"safe", "finalized"}, tag)
			}

			head, err := driverOf(t, n).Head(t.Context())
			if absent && (err != nil || !head.Final.IsZero()) || !absent && err == nil {
				t.Errorf("code %d: %+v, %v", code, head, err)
			}
		}
	})
}
