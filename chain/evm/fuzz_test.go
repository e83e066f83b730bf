package evm

import (
	"bytes"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/seed-8ee7f392/payments/chain"
)

func fuzzDriver(f testing.TB) (*driver, *endpoint, common.Address) {
	f.Helper()

	contract := common.HexToAddress("0x1000000000000000000000000000000000000001")

	driver, err := newDriver(Config{
		Network: Local(
			31337,
			chain.Asset{Symbol: "TST", Kind: chain.Token, Contract: canonical(contract), Decimals: 6},
		),
		RPC: "http://node.invalid",
	})
	if err != nil {
		f.Fatal(err)
	}

	return driver, driver.nodes.Nodes[0], contract
}

// FuzzBlock passes a node's answer through all that a scan does with it.
func FuzzBlock(f *testing.F) {
	driver, node, contract := fuzzDriver(f)
	hash := common.HexToHash("0x01").Hex()
	block := `{"number":"0x7","hash":"` + hash + `","parentHash":"` + hash +
		`","timestamp":"0x5","logsBloom":"0x` + string(
		bytes.Repeat([]byte("0"), 512),
	) +
		`","transactionsRoot":"` + hash + `","receiptsRoot":"` + hash +
		`","transactions":[{"hash":"` + hash + `","from":"` + contract.Hex() +
		`","to":"` + contract.Hex() + `","value":"0x1","blockHash":"` + hash + `"}]}`
	receipt := `{"transactionHash":"` + hash + `","blockHash":"` + hash + `","blockNumber":"0x7",` +
		`"status":"0x1","gasUsed":"0x5208","effectiveGasPrice":"0x1","logs":[{"address":"` +
		contract.Hex() + `","logIndex":"0x0","data":"` + hash + `","topics":["` + transferTopic.Hex() + `","` +
		hash + `","` + hash + `"]}]}`
	f.Add([]byte(block), []byte(receipt))
	f.Add([]byte(`{"transactions":[null]}`), []byte(`{"logs":[{}]}`))
	f.Add([]byte(`{}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, rawBlock, rawReceipt []byte) {
		var (
			block   blockJSON
			receipt receiptJSON
		)
		if (&call{result: rawBlock}).decode(node, &block) != nil ||
			(&call{result: rawReceipt}).decode(node, &receipt) != nil {
			return
		}

		if _, err := block.check(node, 7); err != nil {
			return
		}

		for i := range block.Transactions {
			tx := &block.Transactions[i]
			if receipt.check(node, *tx.Hash, *block.Hash) != nil {
				continue
			}

			for _, coinLogs := range []bool{false, true} {
				checkTransfers(t, driver, node, tx, &receipt, coinLogs)
			}

			if fee, err := receipt.fee(node); err == nil && fee.Big().Sign() < 0 {
				t.Fatalf("fee %s", fee)
			}
		}
	})
}

// checkTransfers checks the transfers of a transaction: amounts, indices and recipients.
func checkTransfers(
	t *testing.T,
	driver *driver,
	node *endpoint,
	tx *txJSON,
	receipt *receiptJSON,
	coinLogs bool,
) {
	t.Helper()

	transfers, err := driver.transfersOf(node, tx, receipt, coinLogs)
	if err != nil {
		return
	}

	seen := map[uint32]bool{}
	for _, transfer := range transfers {
		if transfer.Amount.IsZero() || chain.MaxTransfer.Less(transfer.Amount) || seen[transfer.Index] ||
			transfer.TxHash != tx.Hash.Hex() || int(transfer.Index) > len(receipt.Logs) {
			t.Fatalf("%+v of %+v", transfer, receipt)
		}

		seen[transfer.Index] = true
		if a, err := driver.ParseAddress(string(transfer.To)); err != nil || a != transfer.To {
			t.Fatalf("recipient %q is not canonical", transfer.To)
		}
	}
}

// FuzzLog compares each log that counts as a transfer with the standard's encoding of it.
func FuzzLog(f *testing.F) {
	driver, _, contract := fuzzDriver(f)
	from, to := common.HexToAddress("0x02"), common.HexToAddress("0x03")
	f.Add(
		contract[:], transferTopic[:], common.LeftPadBytes(from[:], 32),
		common.LeftPadBytes(to[:], 32), common.HexToHash("0x05").Bytes(),
	)
	f.Add(
		contract[:], transferTopic[:], common.MaxHash[:], common.LeftPadBytes(to[:], 32),
		common.HexToHash("0x05").Bytes(),
	)
	f.Add(to[:], transferTopic[:], []byte{}, []byte{}, []byte{})
	f.Add(
		params.SystemAddress[:], transferTopic[:], common.LeftPadBytes(from[:], 32),
		common.LeftPadBytes(to[:], 32), common.HexToHash("0x05").Bytes(),
	)
	f.Add(
		params.SystemAddress[:], transferTopic[:], common.LeftPadBytes(from[:], 32),
		common.LeftPadBytes(to[:], 32), common.MaxHash[:],
	)
	f.Fuzz(func(t *testing.T, address, topic, first, second, data []byte) {
		log := logJSON{
			Topics: []common.Hash{
				common.BytesToHash(topic),
				common.BytesToHash(first),
				common.BytesToHash(second),
			},
			Data: data,
		}
		contractOfLog := common.BytesToAddress(address)
		log.Address = &contractOfLog

		if contractOfLog == params.SystemAddress {
			if coin, ok := driver.loggedTransfer(&log, false); ok {
				t.Fatalf("%+v, where movements of coin do not log", coin)
			}
		}

		got, ok := driver.loggedTransfer(&log, true)
		if !ok {
			return
		}

		assets := map[common.Address]chain.Asset{
			contract:             driver.tokens[contract],
			params.SystemAddress: driver.native,
		}

		word := got.Amount.Bytes32()
		if asset, known := assets[contractOfLog]; !known || got.AssetID != asset.ID ||
			log.Topics[0] != transferTopic || !bytes.Equal(word[:], data) ||
			common.BytesToHash(common.HexToAddress(string(got.From)).Bytes()) != log.Topics[1] ||
			common.BytesToHash(common.HexToAddress(string(got.To)).Bytes()) != log.Topics[2] {
			t.Fatalf("%+v of %+v", got, log)
		}
	})
}

// FuzzTransferInput checks that what is read as a transfer encodes to the same bytes.
func FuzzTransferInput(f *testing.F) {
	f.Add(transferInput(common.HexToAddress("0x03"), chain.Units(5)))
	f.Add([]byte{0xa9, 0x05, 0x9c, 0xbb})
	f.Fuzz(func(t *testing.T, in []byte) {
		to, amount, ok := parseTransferInput(in)
		if ok && !bytes.Equal(transferInput(to, amount), in) {
			t.Fatalf("%x read as %s to %s", in, amount, to)
		}
	})
}

// FuzzEnvelope checks that unsigned bytes have one form, the one that go-ethereum signs.
func FuzzEnvelope(f *testing.F) {
	f.Add(
		(&unsignedTx{
			chainID: 1,
			nonce:   2,
			tipCap:  chain.Units(3),
			feeCap:  chain.Units(4),
			gas:     5,
			value:   chain.Units(6),
			data:    []byte{7},
		}).encode(),
	)
	f.Add([]byte{2, 0xc0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		unsigned, err := decodeUnsigned(raw)
		if err != nil {
			return
		}

		if !bytes.Equal(unsigned.encode(), raw) {
			t.Fatalf("%x is encoded as %x", raw, unsigned.encode())
		}

		id := new(big.Int).SetUint64(unsigned.chainID)

		tx := types.NewTx(&types.DynamicFeeTx{
			ChainID:   id,
			Nonce:     unsigned.nonce,
			GasTipCap: unsigned.tipCap.Big(),
			GasFeeCap: unsigned.feeCap.Big(),
			Gas:       unsigned.gas,
			To:        &unsigned.to,
			Value:     unsigned.value.Big(),
			Data:      unsigned.data,
		})
		if unsigned.chainID != 0 && types.LatestSignerForChainID(id).Hash(tx) != crypto.Keccak256Hash(raw) {
			t.Fatalf("%x is signed as something else", raw)
		}
	})
}

// FuzzSignedEnvelope decodes the bytes of transactions to broadcast or replace.
func FuzzSignedEnvelope(f *testing.F) {
	driver, _, _ := fuzzDriver(f)

	key, err := crypto.ToECDSA(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		f.Fatal(err)
	}

	unsigned := &unsignedTx{
		chainID: 31337,
		nonce:   2,
		tipCap:  chain.Units(3),
		feeCap:  chain.Units(4),
		gas:     5,
		value:   chain.Units(6),
	}
	hash := signingHash(unsigned.encode())

	signature, err := crypto.Sign(hash[:], key)
	if err != nil {
		f.Fatal(err)
	}

	tx, err := unsigned.sign(signature)
	if err != nil {
		f.Fatal(err)
	}

	raw, err := tx.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}

	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		tx, from, err := driver.decodeSigned(raw)
		if err == nil && (from == common.Address{} || tx.ChainId().Uint64() != 31337) {
			t.Fatalf("%x was taken as sent by %s", raw, from)
		}
	})
}

// FuzzParseAddress checks that an address has one canonical form.
func FuzzParseAddress(f *testing.F) {
	driver, _, _ := fuzzDriver(f)
	for _, text := range []string{
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
		"0x",
		"",
		"0xg",
	} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		address, err := driver.ParseAddress(text)
		if err != nil {
			return
		}

		reparsed, err := driver.ParseAddress(string(address))
		if err != nil || reparsed != address || !bytes.EqualFold([]byte(address), []byte(text)) {
			t.Fatalf("%q became %q, then %q, %v", text, address, reparsed, err)
		}

		if _, err := json.Marshal(address); err != nil {
			t.Fatal(err)
		}
	})
}
