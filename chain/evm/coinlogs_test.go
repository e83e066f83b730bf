package evm_test

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
)

var (
	// coinLogger is the system address, which logs each movement of coin (EIP-7708).
	coinLogger = common.HexToAddress("0xfffffffffffffffffffffffffffffffffffffffe")
	// vault is a contract that pays.
	vault = common.HexToAddress("0x5000000000000000000000000000000000000005")
	// burnTopic is of coin that a contract burns.
	burnTopic = crypto.Keccak256Hash([]byte("Burn(address,uint256)"))
)

// coinLog is the log of a movement of coin, as the system address makes it.
func coinLog(from, to common.Address, amount uint64) jsonObject {
	log := logOf(coinLogger, 0, amount)
	log["topics"] = []string{
		transferTopic.Hex(), common.BytesToHash(from[:]).Hex(), common.BytesToHash(to[:]).Hex(),
	}

	return log
}

// malformed returns a log of coin with another form.
func malformed(field string, value any) jsonObject {
	log := coinLog(vault, payee, 7)
	log[field] = value

	return log
}

// executed is a transaction of the payer with what its execution logged.
type executed struct {
	to     *common.Address // nil: it creates a contract
	value  uint64
	failed bool
	logs   []jsonObject
}

// setBlock replaces the newest block by one of these transactions.
func (n *fakeNode) setBlock(txs []executed, header jsonObject) {
	height := len(n.blocks) - 1
	b := &n.blocks[height]
	b.txs, b.receipts = nil, nil

	for name, value := range header {
		b.header[name] = value
	}

	for i, tx := range txs {
		fields := jsonObject{"value": hexutil.Uint64(tx.value), "nonce": hexutil.Uint64(i)}
		if tx.to != nil {
			fields["to"] = tx.to.Hex()
		}

		status, logs := "0x1", slices.Clone(tx.logs)
		if tx.failed {
			status = "0x0"
		}

		for k := range logs {
			log := jsonObject{}
			for name, value := range logs[k] {
				log[name] = value
			}

			log["logIndex"] = hexutil.Uint64(k)
			logs[k] = log
		}

		b.txs = append(b.txs, fields)
		b.receipts = append(b.receipts, jsonObject{
			"status":            status,
			"gasUsed":           "0x5208",
			"effectiveGasPrice": "0x3b9aca00",
			"logs":              logs,
		})
	}

	n.seal(height)
}

// moved is a transfer of coin as a test expects it.
type moved struct {
	tx       int
	index    uint32
	from, to common.Address
	amount   uint64
}

// amsterdam are the fields of a header since Amsterdam (EIP-7928).
var amsterdam = jsonObject{
	"withdrawalsRoot":       common.Hash{1},
	"blobGasUsed":           "0x0",
	"excessBlobGas":         "0x0",
	"parentBeaconBlockRoot": common.Hash{2},
	"requestsHash":          common.Hash{3},
	"blockAccessListHash":   common.Hash{4},
	"slotNumber":            "0x9",
}

// newFields are those of a header that nobody knows yet.
var newFields = jsonObject{"epochProof": "0x01"}

var coinLogCases = map[string]struct {
	txs    []executed
	header jsonObject
	want   []moved
}{
	"a plain transfer counts once": {
		txs:  []executed{{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 5)}}},
		want: []moved{{0, 0, payer, payee, 5}},
	},
	"what a contract sends on has the index of its log": {
		txs: []executed{
			{
				to:    &vault,
				value: 9,
				logs: []jsonObject{
					coinLog(
						payer,
						vault,
						9,
					),
					logOf(vault, 0, 1),
					coinLog(vault, payee, 4),
					coinLog(vault, payee, 5),
				},
			},
		},
		want: []moved{{0, 0, payer, vault, 9}, {0, 3, vault, payee, 4}, {0, 4, vault, payee, 5}},
	},
	"what a contract held is shown beside a plain transfer": {
		txs: []executed{
			{to: &vault, logs: []jsonObject{coinLog(vault, payee, 7)}},
			{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 5)}},
		},
		want: []moved{{0, 1, vault, payee, 7}, {1, 0, payer, payee, 5}},
	},
	"the header says it where the block has no plain transfer": {
		txs:    []executed{{to: &vault, logs: []jsonObject{coinLog(vault, payee, 7)}}},
		header: amsterdam,
		want:   []moved{{0, 1, vault, payee, 7}},
	},
	"a sender that is a contract too pays twice": {
		txs: []executed{
			{
				to:    &payee,
				value: 5,
				logs:  []jsonObject{coinLog(payer, payee, 5), coinLog(payer, payee, 5)},
			},
		},
		want: []moved{{0, 0, payer, payee, 5}, {0, 2, payer, payee, 5}},
	},
	"a created contract pays": {
		txs: []executed{
			{value: 5, logs: []jsonObject{coinLog(payer, vault, 5), coinLog(vault, payee, 5)}},
			{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 5)}},
		},
		want: []moved{{0, 1, payer, vault, 5}, {0, 2, vault, payee, 5}, {1, 0, payer, payee, 5}},
	},
	"coin to oneself has no log": {
		txs: []executed{
			{to: &payer, value: 3},
			{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 5)}},
			{to: &vault, logs: []jsonObject{coinLog(vault, payee, 7)}},
		},
		want: []moved{{0, 0, payer, payer, 3}, {1, 0, payer, payee, 5}, {2, 1, vault, payee, 7}},
	},
	"a failed transaction moves nothing and says nothing": {
		txs: []executed{
			{to: &payee, value: 3, failed: true},
			{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 5)}},
			{to: &vault, logs: []jsonObject{coinLog(vault, payee, 7)}},
		},
		want: []moved{{1, 0, payer, payee, 5}, {2, 1, vault, payee, 7}},
	},
	"a log of another form is none": {
		txs: []executed{
			{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 5)}},
			{
				to: &vault,
				logs: []jsonObject{
					malformed("topics", []string{burnTopic.Hex(), common.BytesToHash(payee[:]).Hex()}),
					malformed("topics", []string{transferTopic.Hex(), common.BytesToHash(payee[:]).Hex()}),
					malformed("topics", []string{
						transferTopic.Hex(), common.MaxHash.Hex(), common.BytesToHash(payee[:]).Hex(),
					}),
					malformed("data", "0x07"),
					malformed("address", vault.Hex()),
					coinLog(vault, payee, 0),
					coinLog(vault, payee, 7),
				},
			},
		},
		want: []moved{{0, 0, payer, payee, 5}, {1, 7, vault, payee, 7}},
	},
	"without a plain transfer's log the network has none": {
		txs: []executed{
			{to: &payee, value: 5},
			{to: &vault, logs: []jsonObject{coinLog(vault, payee, 7)}},
		},
		want: []moved{{0, 0, payer, payee, 5}},
	},
	"one plain transfer without a log is enough": {
		txs: []executed{
			{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 5)}},
			{to: &payee, value: 6, logs: []jsonObject{logOf(vault, 0, 1)}},
			{to: &vault, logs: []jsonObject{coinLog(vault, payee, 7)}},
		},
		header: amsterdam,
		want:   []moved{{0, 0, payer, payee, 5}, {1, 0, payer, payee, 6}},
	},
	"a log of another amount is not the plain transfer's": {
		txs: []executed{
			{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 6)}},
		},
		want: []moved{{0, 0, payer, payee, 5}},
	},
	"nothing says that the network has logs": {
		txs:  []executed{{to: &vault, logs: []jsonObject{coinLog(vault, payee, 7)}}},
		want: nil,
	},
}

// Coin that a contract moves is a transfer of its block where the block itself shows that movements of coin log, and
// that of plain transactions counts once.
func TestCoinOfContractsByItsLogs(t *testing.T) {
	for name, c := range coinLogCases {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode(5)
			n.setBlock(c.txs, c.header)

			d := driverOf(t, n)
			native, _ := d.Network().Native()

			var want []chain.Transfer

			for _, m := range c.want {
				want = append(want, chain.Transfer{
					TxHash:  n.blocks[5].txs[m.tx]["hash"].(string),
					Index:   m.index,
					From:    chain.Address(m.from.Hex()),
					To:      chain.Address(m.to.Hex()),
					AssetID: native.ID,
					Amount:  chain.Units(m.amount),
				})
			}

			blocks, err := d.Blocks(t.Context(), 5, 5)
			if err != nil || blocks[0].Unverified != "" {
				t.Fatalf("%+v, %v", blocks, err)
			}

			if !slices.Equal(blocks[0].Transfers, want) {
				t.Errorf("the block transfers\n%+v, want\n%+v", blocks[0].Transfers, want)
			}

			for i, tx := range n.blocks[5].txs {
				hash := tx["hash"].(string)
				own := slices.DeleteFunc(
					slices.Clone(want),
					func(m chain.Transfer) bool { return m.TxHash != hash },
				)

				found, err := d.Transaction(t.Context(), hash)
				if err != nil || !slices.Equal(found.Transfers, own) {
					t.Errorf("transaction %d is found with %+v, %v, want %+v", i, found.Transfers, err, own)
				}

				status, err := d.Status(t.Context(), chain.Signed{TxHash: hash})
				if err != nil || !slices.Equal(status.Transfers, own) {
					t.Errorf(
						"the status of transaction %d has %+v, %v, want %+v",
						i,
						status.Transfers,
						err,
						own,
					)
				}
			}
		})
	}
}

// What no header proves shows no coin of contracts: one node's word is not enough, and balances find it.
func TestCoinLogsOfAnUnverifiedBlockDoNotCount(t *testing.T) {
	n := newFakeNode(5)
	n.setBlock(
		[]executed{
			{to: &payee, value: 5, logs: []jsonObject{coinLog(payer, payee, 5)}},
			{to: &vault, logs: []jsonObject{coinLog(vault, payee, 7)}},
		},
		newFields,
	)
	n.rename(5)

	blocks, err := driverOf(t, n).Blocks(t.Context(), 5, 5)
	if err != nil || blocks[0].Unverified == "" || len(blocks[0].Transfers) != 1 ||
		blocks[0].Transfers[0].Index != 0 {
		t.Errorf("%+v, %v", blocks, err)
	}
}

// A movement has one index: what its receipt logs is not read from a trace again.
func TestCoinThatLogsIsNotTraced(t *testing.T) {
	for name, header := range map[string]jsonObject{"verified": nil, "unverified": newFields} {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode(5)
			n.setBlock(
				[]executed{
					{
						to:    &vault,
						value: 5,
						logs:  []jsonObject{coinLog(payer, vault, 5), coinLog(vault, payee, 5)},
					},
				},
				header,
			)

			if header != nil {
				n.rename(5)
			}

			n.answer = func(c rpcCall) (any, bool) {
				call := jsonObject{"type": "CALL", "from": vault.Hex(), "to": payee.Hex(), "value": "0x5"}

				return jsonObject{
					"type":  "CALL",
					"calls": []jsonObject{call},
				}, c.Method == "debug_traceTransaction"
			}

			d := driverOf(t, n, func(c *evm.Config) { c.Traces = true })

			found, err := d.Transaction(t.Context(), n.blocks[5].txs[0]["hash"].(string))
			if err != nil {
				t.Fatal(err)
			}

			for _, m := range found.Transfers {
				if m.Index > 2 {
					t.Errorf("%+v is shown by a trace", m)
				}
			}

			if traced := n.count("debug_traceTransaction"); traced != 0 {
				t.Errorf("%d traces", traced)
			}
		})
	}
}
