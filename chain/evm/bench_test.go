package evm

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// BenchmarkVerifyBlock measures what one block costs after its bytes arrived: parsing, and the checks with
// and without recovering the senders. Half of the transactions send coin, half a token with two logs.
func BenchmarkVerifyBlock(b *testing.B) {
	driver, err := newDriver(Config{Network: Ethereum, RPC: "http://node.invalid"})
	if err != nil {
		b.Fatal(err)
	}

	for _, count := range []int{100, 300} {
		rawBlock, rawReceipts := syntheticBlock(b, count)

		for _, mode := range []string{"parse", "checks", "checks and senders"} {
			b.Run(fmt.Sprintf("%d/%s", count, mode), func(b *testing.B) {
				best := time.Hour

				for b.Loop() {
					start := time.Now()

					v := &verification{driver: driver, node: driver.nodes.Nodes[0], block: new(blockJSON)}
					if err := json.Unmarshal(rawBlock, v.block); err != nil {
						b.Fatal(err)
					}

					if err := json.Unmarshal(rawReceipts, &v.receipts); err != nil {
						b.Fatal(err)
					}

					v.leaveOutStateSync()

					for _, check := range checksOf(v, mode) {
						if err := check(); err != nil || len(v.reasons) > 0 {
							b.Fatal(err, v.reasons)
						}
					}

					best = min(best, time.Since(start))
				}

				b.ReportMetric(float64(best.Microseconds())/1000, "best-ms/block")
				b.ReportMetric(float64(len(rawBlock)+len(rawReceipts)), "bytes/block")
			})
		}
	}
}

// checksOf returns the checks of a mode.
func checksOf(v *verification, mode string) []func() error {
	checks := []func() error{v.checkHeader, v.checkTransactions, v.checkReceipts, v.checkPrices}

	switch mode {
	case "parse":
		return nil
	case "checks":
		return checks
	}

	return append(checks, v.checkSenders)
}

// syntheticBlock returns the JSON of a block and its receipts as a node writes them.
func syntheticBlock(b *testing.B, count int) (block, receipts []byte) {
	b.Helper()

	key, err := crypto.GenerateKey()
	if err != nil {
		b.Fatal(err)
	}

	id := new(big.Int).SetUint64(Ethereum.ChainID)
	token := common.HexToAddress(string(usdcEthereum))

	header := &types.Header{Number: big.NewInt(9), Difficulty: new(big.Int), BaseFee: big.NewInt(1e9)}

	var (
		txs, receiptList []any
		leaves, results  [][]byte
	)

	for i := range count {
		inner := &types.DynamicFeeTx{
			ChainID:   id,
			Nonce:     uint64(i),
			GasTipCap: big.NewInt(1e8),
			GasFeeCap: big.NewInt(3e9),
			Gas:       100_000,
			To:        &token,
			Value:     big.NewInt(int64(i)),
		}
		receipt := &types.Receipt{
			Type:              2,
			Status:            1,
			CumulativeGasUsed: uint64(21000 * (i + 1)),
			GasUsed:           21000,
		}

		if i%2 == 1 {
			inner.Data = make([]byte, 68)
			log := &types.Log{
				Address: token,
				Topics:  []common.Hash{transferTopic, {31: 1}, {31: byte(i)}},
				Data:    make([]byte, 32),
			}
			receipt.Logs = []*types.Log{log, log}
		}

		receipt.Bloom = types.CreateBloom(receipt)

		tx, err := types.SignNewTx(key, types.LatestSignerForChainID(id), inner)
		if err != nil {
			b.Fatal(err)
		}

		leaf, _ := tx.MarshalBinary()
		result, _ := receipt.MarshalBinary()

		leaves, results = append(leaves, leaf), append(results, result)
		txs = append(txs, with(b, tx, map[string]any{"from": crypto.PubkeyToAddress(key.PublicKey)}))
		receiptList = append(receiptList, with(b, receipt, map[string]any{
			"transactionHash":   tx.Hash(),
			"effectiveGasPrice": "0x1",
			"blockNumber":       "0x9",
		}))
	}

	header.TxHash, header.ReceiptHash = listRoot(leaves), listRoot(results)
	block, _ = json.Marshal(with(b, header, map[string]any{"transactions": txs, "size": hexutil.Uint64(1)}))
	receipts, _ = json.Marshal(receiptList)

	return block, receipts
}

// with returns a value's JSON object with more fields.
func with(b *testing.B, value any, more map[string]any) map[string]any {
	b.Helper()

	raw, err := json.Marshal(value)
	if err != nil {
		b.Fatal(err)
	}

	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		b.Fatal(err)
	}

	for name, field := range more {
		fields[name] = field
	}

	return fields
}
