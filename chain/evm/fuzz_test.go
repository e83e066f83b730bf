package evm

import (
	"bytes"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
)

func fuzzDriver(f *testing.F) (*Driver, *endpoint, common.Address) {
	f.Helper()

	contract := common.HexToAddress("0x1000000000000000000000000000000000000001")

	d, err := New(Config{
		Network: Local(
			31337,
			chain.Asset{Symbol: "TST", Kind: chain.Token, Contract: canonical(contract), Decimals: 6},
		),
		RPC: "http://node.invalid",
	})
	if err != nil {
		f.Fatal(err)
	}

	return d, d.nodes.Nodes[0], contract
}

// FuzzBlock feeds a node's answer through everything that a scan does with it.
func FuzzBlock(f *testing.F) {
	d, e, contract := fuzzDriver(f)
	hash := common.HexToHash("0x01").Hex()
	block := `{"number":"0x7","hash":"` + hash + `","parentHash":"` + hash +
		`","timestamp":"0x5","logsBloom":"0x` + string(
		bytes.Repeat([]byte("0"), 512),
	) +
		`","transactionsRoot":"` + hash + `","transactions":[{"hash":"` + hash + `","from":"` + contract.Hex() +
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
			b blockJSON
			r receiptJSON
		)
		if (&call{result: rawBlock}).decode(e, &b) != nil ||
			(&call{result: rawReceipt}).decode(e, &r) != nil {
			return
		}

		if _, err := b.check(e, 7); err != nil {
			return
		}

		for i := range b.Transactions {
			tx := &b.Transactions[i]
			if r.check(e, *tx.Hash, *b.Hash) != nil {
				continue
			}

			moved, err := d.transfersOf(e, tx, &r)
			if err != nil {
				continue
			}

			seen := map[uint32]bool{}
			for _, m := range moved {
				if m.Amount.IsZero() || chain.MaxTransfer.Less(m.Amount) || seen[m.Index] ||
					m.TxHash != tx.Hash.Hex() ||
					int(m.Index) > len(r.Logs) {
					t.Fatalf("%+v of %s", m, rawReceipt)
				}

				seen[m.Index] = true
				if a, err := d.ParseAddress(string(m.To)); err != nil || a != m.To {
					t.Fatalf("recipient %q is not canonical", m.To)
				}
			}

			_ = checkBloom(e, &b, []*receiptJSON{&r})
			if fee, err := r.fee(e); err == nil && fee.Big().Sign() < 0 {
				t.Fatalf("fee %s", fee)
			}
		}
	})
}

// FuzzLog checks every log that counts as a transfer against the standard's own encoding of it.
func FuzzLog(f *testing.F) {
	d, _, contract := fuzzDriver(f)
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
	f.Fuzz(func(t *testing.T, address, topic, first, second, data []byte) {
		l := logJSON{
			Topics: []common.Hash{
				common.BytesToHash(topic),
				common.BytesToHash(first),
				common.BytesToHash(second),
			},
			Data: data,
		}
		a := common.BytesToAddress(address)
		l.Address = &a

		got, ok := d.tokenTransfer(&l)
		if !ok {
			return
		}

		word := got.Amount.Bytes32()
		if a != contract || l.Topics[0] != transferTopic || !bytes.Equal(word[:], data) ||
			common.BytesToHash(common.HexToAddress(string(got.From)).Bytes()) != l.Topics[1] ||
			common.BytesToHash(common.HexToAddress(string(got.To)).Bytes()) != l.Topics[2] {
			t.Fatalf("%+v of %+v", got, l)
		}
	})
}

// FuzzTransferInput: what is read as a transfer is written back as the same bytes.
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

// FuzzEnvelope: unsigned bytes have one form, and it is the one that go-ethereum signs.
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
		e, err := decodeUnsigned(raw)
		if err != nil {
			return
		}

		if !bytes.Equal(e.encode(), raw) {
			t.Fatalf("%x is encoded as %x", raw, e.encode())
		}

		id := new(big.Int).SetUint64(e.chainID)

		tx := types.NewTx(&types.DynamicFeeTx{
			ChainID:   id,
			Nonce:     e.nonce,
			GasTipCap: e.tipCap.Big(),
			GasFeeCap: e.feeCap.Big(),
			Gas:       e.gas,
			To:        &e.to,
			Value:     e.value.Big(),
			Data:      e.data,
		})
		if e.chainID != 0 && types.LatestSignerForChainID(id).Hash(tx) != crypto.Keccak256Hash(raw) {
			t.Fatalf("%x is signed as something else", raw)
		}
	})
}

// FuzzSignedEnvelope reads what is to be broadcast or replaced.
func FuzzSignedEnvelope(f *testing.F) {
	d, _, _ := fuzzDriver(f)

	key, err := crypto.ToECDSA(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		f.Fatal(err)
	}

	e := &unsignedTx{
		chainID: 31337,
		nonce:   2,
		tipCap:  chain.Units(3),
		feeCap:  chain.Units(4),
		gas:     5,
		value:   chain.Units(6),
	}
	hash := signingHash(e.encode())

	signature, err := crypto.Sign(hash[:], key)
	if err != nil {
		f.Fatal(err)
	}

	tx, err := e.sign(signature)
	if err != nil {
		f.Fatal(err)
	}

	raw, err := tx.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}

	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		tx, from, err := d.decodeSigned(raw)
		if err == nil && (from == common.Address{} || tx.ChainId().Uint64() != 31337) {
			t.Fatalf("%x was taken as sent by %s", raw, from)
		}
	})
}

// FuzzParseAddress: an address has one canonical form.
func FuzzParseAddress(f *testing.F) {
	d, _, _ := fuzzDriver(f)
	for _, s := range []string{
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
		"0x",
		"",
		"0xg",
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, s string) {
		a, err := d.ParseAddress(s)
		if err != nil {
			return
		}

		reparsed, err := d.ParseAddress(string(a))
		if err != nil || reparsed != a || !bytes.EqualFold([]byte(a), []byte(s)) {
			t.Fatalf("%q became %q, then %q, %v", s, a, reparsed, err)
		}

		if _, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		}
	})
}
