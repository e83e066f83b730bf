package evm_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
)

// FuzzVerifiedBlock shows the driver a block and its receipts as a node might write them. What is taken as
// the verified block of a known hash must be that block, to the last transfer.
func FuzzVerifiedBlock(f *testing.F) {
	n := newFakeNode(3)
	n.chainID = evm.Ethereum.ChainID
	n.blocks[3].txs = append(
		n.blocks[3].txs,
		jsonObject{"to": nil, "value": "0x0", "nonce": "0x4", "input": "0x6000"},
	)
	n.blocks[3].receipts = append(
		n.blocks[3].receipts, jsonObject{"status": "0x0", "gasUsed": "0x9", "logs": []jsonObject{}},
	)
	logs := append([]jsonObject{coinLog(payer, payee, 1003)}, logsOf(&n.blocks[3])...)

	logs = append(logs, coinLog(vault, payee, 7))
	for i := range logs {
		logs[i]["logIndex"] = hexutil.Uint64(i)
	}

	n.blocks[3].receipts[0]["logs"] = logs
	n.seal(0)

	var block, receipts []byte

	change := func(c *evm.Config) { c.Network.ChainID, c.Attempts = evm.Ethereum.ChainID, 1 }
	read := func(t testing.TB) ([]chain.Block, error) {
		node := &fakeNode{answer: func(c rpcCall) (any, bool) {
			switch c.Method {
			case "eth_chainId":
				return hexutil.Uint64(n.chainID), true
			case "eth_blockNumber":
				return "0x3", true
			case "eth_getBlockByNumber":
				return json.RawMessage(block), true
			case "eth_getBlockReceipts":
				return json.RawMessage(receipts), true
			}

			return rpcError{-32601, "no such method"}, true
		}}
		config := evm.Config{
			Network:    fakeNetwork(),
			RPC:        "http://a",
			HTTPClient: &http.Client{Transport: fakeTransport{"a": node}},
		}
		change(&config)

		driver, err := evm.NewDriver(config)
		if err != nil {
			t.Fatal(err)
		}

		return driver.Blocks(t.Context(), 3, 3)
	}

	recode(n.blocks[3].json(true), (*json.RawMessage)(&block))
	recode(n.blocks[3].receipts, (*json.RawMessage)(&receipts))

	known, err := read(f)
	if err != nil || known[0].Unverified != "" || len(known[0].Transfers) != 3 || len(known[0].Spent) != 2 {
		f.Fatalf("%+v, %v", known, err)
	}

	f.Add(block, receipts)

	wrong := newFakeNode(3).blocks[3]
	wrong.header["hash"] = known[0].Hash

	var other []byte

	recode(wrong.json(true), (*json.RawMessage)(&other))
	f.Add(other, receipts)
	f.Fuzz(func(t *testing.T, rawBlock, rawReceipts []byte) {
		if !json.Valid(rawBlock) || !json.Valid(rawReceipts) {
			return
		}

		block, receipts = rawBlock, rawReceipts

		got, err := read(t)
		if err != nil || got[0].Unverified != "" || got[0].Hash != known[0].Hash {
			return
		}

		if !reflect.DeepEqual(got, known) {
			t.Fatalf("%+v was taken as %+v", got, known)
		}
	})
}
