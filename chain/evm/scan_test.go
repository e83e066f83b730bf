package evm_test

// What a scan accepts from a node, and how large its requests are.

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/fault"
)

func TestBlocksHoldEveryTransfer(t *testing.T) {
	n := newFakeNode(10)
	driver := driverOf(t, n)

	blocks, err := driver.Blocks(t.Context(), 0, 9)
	if err != nil {
		t.Fatal(err)
	}

	wantHeights(t, blocks, 0, 9)

	native, _ := driver.Network().Native()
	token, _ := driver.Network().Asset("USDX")

	for i, b := range blocks {
		if b.Hash != n.blocks[i].hash() || b.Time.Unix() != int64(1_700_000_000+12*i) {
			t.Errorf("block %d is %+v", i, b.Ref)
		}

		if i == 0 {
			if len(b.Transfers) != 0 {
				t.Errorf("the empty block has %+v", b.Transfers)
			}

			continue
		}

		if b.Parent != blocks[i-1].Hash {
			t.Errorf("block %d has parent %s", i, b.Parent)
		}

		hash := n.blocks[i].txs[0]["hash"].(string)

		want := []chain.Transfer{
			{
				TxHash:  hash,
				Index:   0,
				From:    chain.Address(payer.Hex()),
				To:      chain.Address(payee.Hex()),
				AssetID: native.ID,
				Amount:  chain.Units(uint64(1000 + i)),
			},
			{
				TxHash:  hash,
				Index:   2,
				From:    chain.Address(payer.Hex()),
				To:      chain.Address(payee.Hex()),
				AssetID: token.ID,
				Amount:  chain.Units(uint64(i)),
			},
		}
		if len(b.Transfers) != 2 || b.Transfers[0] != want[0] || b.Transfers[1] != want[1] {
			t.Errorf("block %d has %+v, want %+v", i, b.Transfers, want)
		}
	}
}

// Each case is an inconsistency in block 3. Nothing may be returned, and the next consistent answer
// must be accepted. Seen in smartbch #54, trongrid #16, lotus #13758.
func TestLiesAboutABlockAreUnavailable(t *testing.T) {
	receipt := func(n *fakeNode) jsonObject { return n.blocks[3].receipts[0] }
	logs := func(n *fakeNode) []jsonObject { return receipt(n)["logs"].([]jsonObject) }

	lies := map[string]func(n *fakeNode){
		"no receipts": func(n *fakeNode) {
			n.blocks[3].receipts = nil
			n.answer = nullFor("eth_getTransactionReceipt")
		},
		"null receipts": func(n *fakeNode) {
			n.answer = nullFor(
				"eth_getBlockReceipts", "eth_getTransactionReceipt",
			)
		},
		"receipts without logs":        func(n *fakeNode) { receipt(n)["logs"] = []jsonObject{} },
		"receipts missing one log":     func(n *fakeNode) { receipt(n)["logs"] = logs(n)[:1] },
		"a gap in the logs":            func(n *fakeNode) { logs(n)[1]["logIndex"] = "0x9" },
		"a removed log":                func(n *fakeNode) { logs(n)[1]["removed"] = true },
		"the receipt of another block": func(n *fakeNode) { receipt(n)["blockHash"] = n.blocks[4].hash() },
		"a receipt without a status":   func(n *fakeNode) { delete(receipt(n), "status") },
		"transactions left out":        func(n *fakeNode) { n.blocks[3].txs = nil; n.blocks[3].receipts = nil },
		"a coin transfer left out": func(n *fakeNode) { // no log betrays it
			n.blocks[3].txs, n.blocks[3].receipts = nil, nil
			n.blocks[3].header["logsBloom"] = n.blocks[0].header["logsBloom"]
		},
		"another block's transaction": func(n *fakeNode) { n.blocks[3].txs[0]["blockHash"] = n.blocks[4].hash() },
		"another height":              func(n *fakeNode) { n.blocks[3].header["number"] = "0x4" },
		"no bloom":                    func(n *fakeNode) { delete(n.blocks[3].header, "logsBloom") },
		"a transaction without value": func(n *fakeNode) { delete(n.blocks[3].txs[0], "value") },
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNode(10)
				lie(n)
				driver := driverOf(t, n)
				blocks, err := driver.Blocks(t.Context(), 2, 5)
				wantFault(t, err, fault.Unavailable, "node_unavailable")

				if len(blocks) != 0 {
					t.Errorf("%d blocks beside the error", len(blocks))
				}

				honest := newFakeNode(10)

				n.update(func(n *fakeNode) { n.blocks, n.answer = honest.blocks, nil })

				if blocks, err = driver.Blocks(t.Context(), 2, 5); err != nil {
					t.Fatal(err)
				}

				wantHeights(t, blocks, 2, 5)
			})
		})
	}
}

func nullFor(methods ...string) func(c rpcCall) (any, bool) {
	return func(c rpcCall) (any, bool) {
		for _, method := range methods {
			if c.Method == method {
				return nil, true
			}
		}

		return nil, false
	}
}

// An inconsistency that ends while the driver retries is invisible to the caller.
func TestEmptyReceiptsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(10)
		left := 1
		n.answer = func(c rpcCall) (any, bool) {
			if c.Method == "eth_getBlockReceipts" && left > 0 {
				left--
				return nil, true
			}

			return nil, false
		}

		blocks, err := driverOf(t, n).Blocks(t.Context(), 3, 3)
		if err != nil || len(blocks) != 1 || len(blocks[0].Transfers) != 2 {
			t.Fatalf("%+v, %v", blocks, err)
		}
	})
}

func TestFailedTransactionsAndForeignLogsMoveNothing(t *testing.T) {
	n := newFakeNode(4)
	n.blocks[1].receipts[0]["status"] = "0x0"
	token := n.blocks[2].receipts[0]["logs"].([]jsonObject)[1]
	// an NFT's Transfer has a fourth topic
	token["topics"] = append(token["topics"].([]string), common.Hash{}.Hex())
	n.blocks[3].receipts[0]["logs"].([]jsonObject)[1]["data"] = "0x"
	zero := common.Hash{}
	n.blocks[4].receipts[0]["logs"].([]jsonObject)[1]["data"] = zero.Hex()
	n.blocks[4].txs[0]["value"] = "0x0"
	n.seal(1)

	blocks, err := driverOf(t, n).Blocks(t.Context(), 1, 4)
	if err != nil {
		t.Fatal(err)
	}

	for i, want := range []int{0, 1, 1, 0} {
		if got := len(blocks[i].Transfers); got != want || blocks[i].Unverified != "" {
			t.Errorf(
				"block %d moves %+v, want %d transfers; %s",
				i+1,
				blocks[i].Transfers,
				want,
				blocks[i].Unverified,
			)
		}

		spent := chain.Spend{
			Sender: chain.Address(payer.Hex()),
			Nonce:  uint64(i) + 1,
			By:     n.blocks[i+1].txs[0]["hash"].(string),
			Failed: i == 0,
		}
		if got := blocks[i].Spent; len(got) != 1 || got[0] != spent {
			t.Errorf("block %d uses up %+v, want %+v", i+1, got, spent)
		}
	}
}

// An Approval has as many topics as a Transfer, and an amount, and transfers nothing.
func TestApprovalIsNoTransfer(t *testing.T) {
	n := newFakeNode(1)
	log := n.blocks[1].receipts[0]["logs"].([]jsonObject)[1]
	topics := slices.Clone(log["topics"].([]string))
	topics[0] = crypto.Keccak256Hash([]byte("Approval(address,address,uint256)")).Hex()
	log["topics"] = topics

	n.seal(1)

	blocks, err := driverOf(t, n).Blocks(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}

	if got := blocks[0].Transfers; len(got) != 1 || got[0].Index != 0 {
		t.Errorf("the block moves %+v, want its coin alone", got)
	}
}

func TestAbsurdAmountsAreLeftOut(t *testing.T) {
	n := newFakeNode(2)
	all := common.MaxHash.Hex()
	n.blocks[1].receipts[0]["logs"].([]jsonObject)[1]["data"] = all
	n.blocks[1].txs[0]["value"] = all
	most := chain.MaxTransfer.Bytes32()
	n.blocks[2].txs[0]["value"] = "0x" + common.Bytes2Hex(most[2:])
	n.seal(1)

	blocks, err := driverOf(t, n).Blocks(t.Context(), 1, 2)
	if err != nil {
		t.Fatal(err)
	}

	if len(blocks[0].Transfers) != 0 {
		t.Errorf("%+v, which no sum could hold", blocks[0].Transfers)
	}

	if len(blocks[1].Transfers) != 2 || blocks[1].Transfers[0].Amount != chain.MaxTransfer {
		t.Errorf("%+v, want the largest amount that is taken in", blocks[1].Transfers)
	}
}

func TestNodeWithoutBlockReceipts(t *testing.T) {
	n := newFakeNode(10)
	n.answer = func(c rpcCall) (any, bool) {
		return rpcError{
			-32601,
			"the method eth_getBlockReceipts does not exist",
		}, c.Method == "eth_getBlockReceipts"
	}

	driver := driverOf(t, n)
	for range 2 {
		blocks, err := driver.Blocks(t.Context(), 1, 5)
		if err != nil {
			t.Fatal(err)
		}

		wantHeights(t, blocks, 1, 5)

		if len(blocks[4].Transfers) != 2 {
			t.Errorf("%+v", blocks[4].Transfers)
		}
	}

	if got := n.count("eth_getBlockReceipts"); got != 5 {
		t.Errorf("the missing method was called %d times, want once for each of the first 5 blocks", got)
	}
}

// A Bor node omits state-sync transactions from eth_getBlockReceipts.
func TestReceiptLeftOutIsReadAlone(t *testing.T) {
	n := newFakeNode(5)
	full := n.blocks[3].receipts[0]
	n.blocks[3].receipts = []jsonObject{}
	n.answer = func(c rpcCall) (any, bool) {
		return full, c.Method == "eth_getTransactionReceipt" && c.param(0) == full["transactionHash"]
	}

	blocks, err := driverOf(t, n).Blocks(t.Context(), 2, 4)
	if err != nil {
		t.Fatal(err)
	}

	if len(blocks) != 3 || len(blocks[1].Transfers) != 2 {
		t.Errorf("%+v", blocks)
	}
}

func TestReorganisationWhileReadingEndsTheBatch(t *testing.T) {
	n := newFakeNode(6)

	fork := newFakeNode(3)
	for range 3 {
		fork.extend("other")
	}

	n.blocks[5], n.blocks[6] = fork.blocks[5], fork.blocks[6] // 5 does not follow 4

	blocks, err := driverOf(t, n).Blocks(t.Context(), 2, 6)
	if err != nil {
		t.Fatal(err)
	}

	wantHeights(t, blocks, 2, 4)
}

func TestRangeBeyondTheTip(t *testing.T) {
	driver := driverOf(t, newFakeNode(6))

	blocks, err := driver.Blocks(t.Context(), 5, 9)
	if err != nil {
		t.Fatal(err)
	}

	wantHeights(t, blocks, 5, 6)
	_, err = driver.Blocks(t.Context(), 7, 9)
	wantFault(t, err, fault.NotFound, "block_unknown")
	_, err = driver.Blocks(t.Context(), 5, 4)
	wantFault(t, err, fault.Invalid, "range_invalid")
}

// Providers refuse large requests in many ways (INFURA/infura #237, boundless #838).
func TestRangeHalvesOnRefusalAndGrowsSlowly(t *testing.T) {
	refusals := map[string]func(w http.ResponseWriter){
		"HTTP 413": func(w http.ResponseWriter) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
		"HTTP 400": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) },
		"HTTP 429": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"one error": func(w http.ResponseWriter) {
			_, _ = w.Write(
				[]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}`),
			)
		},
		"too long":       func(w http.ResponseWriter) { _, _ = w.Write(bytes.Repeat([]byte(" "), 1<<19)) },
		"a limit inside": nil,
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNode(2000)
				limit := 4
				n.http = func(w http.ResponseWriter, calls []rpcCall) bool {
					if len(calls) > limit && refusal != nil {
						refusal(w)
						return true
					}

					return false
				}
				size := 0

				n.answer = func(c rpcCall) (any, bool) {
					return rpcError{-32005, "limit exceeded"}, refusal == nil && size > limit
				}
				if refusal == nil {
					n.http = func(_ http.ResponseWriter, calls []rpcCall) bool { size = len(calls); return false }
				}

				driver := driverOf(t, n, func(c *evm.Config) { c.MaxResponse = 1 << 18 })
				next := uint64(1)
				read := func() int {
					blocks, err := driver.Blocks(t.Context(), next, 2000)
					if err != nil {
						t.Fatal(err)
					}

					wantHeights(t, blocks, next, next+uint64(len(blocks))-1)
					next += uint64(len(blocks))

					return len(blocks)
				}
				read()
				n.resetRequests()

				for range 100 {
					if got := read(); got < limit/2 || got > limit+1 {
						t.Fatalf("%d blocks at once from a node that takes %d", got, limit)
					}
				}

				refused := 0

				for _, methods := range n.requests {
					if len(methods) > limit {
						refused++
					}
				}

				if refused > len(n.requests)/20 {
					t.Fatalf(
						"%d of %d requests were too large: the size grows too fast",
						refused, len(n.requests),
					)
				}

				n.update(func(*fakeNode) { limit = 1000 })

				grown := []int{}
				for range 60 {
					if got := read(); len(grown) == 0 || got != grown[len(grown)-1] {
						grown = append(grown, got)
					}
				}

				for i := range grown {
					if i > 0 && grown[i] != grown[i-1]+1 {
						t.Fatalf("the range grew %v, want one by one", grown)
					}
				}

				if last := grown[len(grown)-1]; last <= 4 || last > 16 {
					t.Fatalf("the range grew %v", grown)
				}
			})
		})
	}
}

func TestSingleCallThatIsTooMuchIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(10)

		driver := driverOf(t, n)
		if _, err := driver.Head(t.Context()); err != nil {
			t.Fatal(err)
		}

		n.update(func(n *fakeNode) {
			n.http = func(w http.ResponseWriter, _ []rpcCall) bool {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return true
			}
		})

		_, err := driver.Blocks(t.Context(), 1, 8)
		wantFault(t, err, fault.Unavailable, "node_unavailable")
	})
}

func TestPool(t *testing.T) {
	n := newFakeNode(5)
	token := common.HexToAddress(string(fakeToken.Contract))
	amount := chain.Units(77).Bytes32()
	word := func(a common.Address) string { return common.Bytes2Hex(common.LeftPadBytes(a[:], 32)) }
	tx := func(i byte, to any, value, input string) jsonObject {
		return jsonObject{
			"hash":      common.BytesToHash([]byte{9, i}).Hex(),
			"from":      payer.Hex(),
			"to":        to,
			"value":     value,
			"input":     input,
			"blockHash": nil,
		}
	}
	number := "0x6"
	n.answer = func(c rpcCall) (any, bool) {
		if c.Method != "eth_getBlockByNumber" || c.param(0) != "pending" {
			return nil, false
		}

		return jsonObject{
			"number": number,
			"transactions": []jsonObject{
				tx(1, payee.Hex(), "0x5", "0x"),
				tx(2, token.Hex(), "0x0", "0xa9059cbb"+word(payee)+common.Bytes2Hex(amount[:])),
				tx(3, nil, "0x5", "0x6000"), // creates a contract
				// transferFrom: which log it will be is not known
				tx(4, token.Hex(), "0x0", "0x23b872dd"+word(payer)+word(payee)+common.Bytes2Hex(amount[:])),
				// cut short
				tx(5, token.Hex(), "0x0", "0xa9059cbb"+word(payee)),
				// not a token of ours
				tx(6, payer.Hex(), "0x0", "0xa9059cbb"+word(payee)+common.Bytes2Hex(amount[:])),
			},
		}, true
	}
	driver := driverOf(t, n)

	pool, err := driver.Pool(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if len(pool) != 2 || len(pool[0].Transfers) != 1 || len(pool[1].Transfers) != 1 {
		t.Fatalf("%+v", pool)
	}

	if got := pool[0].Transfers[0]; got.Index != 0 || got.Amount != chain.Units(5) ||
		got.To != chain.Address(payee.Hex()) {
		t.Errorf("%+v", got)
	}

	if got := pool[1].Transfers[0]; got.Index != 1 || got.Amount != chain.Units(77) ||
		got.To != chain.Address(payee.Hex()) {
		t.Errorf("%+v", got)
	}

	number = "0x5" // the newest block in the place of a pending one

	if pool, err := driver.Pool(t.Context()); err != nil || len(pool) != 0 {
		t.Errorf("a mined block is shown as the pool: %+v, %v", pool, err)
	}

	off := driverOf(t, n, func(c *evm.Config) { c.Pool = evm.PoolOff })
	n.resetRequests()

	if pool, err := off.Pool(t.Context()); err != nil || len(pool) != 0 || len(n.requests) != 0 {
		t.Errorf("%+v, %v after %v", pool, err, n.requests)
	}
}

// Receipts of one block that are too large together are read one by one.
func TestReceiptsThatAreTooLargeTogetherAreReadSingly(t *testing.T) {
	n := newFakeNode(3)
	n.http = func(w http.ResponseWriter, calls []rpcCall) bool {
		for _, c := range calls {
			if c.Method == "eth_getBlockReceipts" {
				_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<18+1))
				return true
			}
		}

		return false
	}

	driver := driverOf(t, n, func(c *evm.Config) { c.MaxResponse = 1 << 18 })

	blocks, err := driver.Blocks(t.Context(), 1, 3)
	if err != nil {
		t.Fatal(err)
	}

	wantHeights(t, blocks, 1, 3)
}
