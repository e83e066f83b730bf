package tron

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
)

// FuzzAddress: an address has one canonical form, in every spelling.
func FuzzAddress(f *testing.F) {
	d := testDriver(f)
	for _, a := range readVectors(f).Addresses {
		f.Add(a.Base58)
		f.Add(a.Hex)
	}

	f.Add("T")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := d.ParseAddress(s)
		if err != nil {
			if got != "" {
				t.Errorf("%q is %q beside its error", s, got)
			}

			return
		}

		reread, err := d.ParseAddress(string(got))
		if err != nil || reread != got || len(got) != 34 || got[0] != 'T' {
			t.Errorf("%q is %q, which is %q, %v", s, got, reread, err)
		}
	})
}

// FuzzTransaction: bytes that are read are written reread as the same transaction.
func FuzzTransaction(f *testing.F) {
	for _, x := range readVectors(f).Transactions {
		f.Add(unhex(f, x.Raw))
		f.Add(encodeSigned(unhex(f, x.Raw), unhex(f, x.Signature)))
	}

	f.Fuzz(func(t *testing.T, b []byte) {
		if tx, _, signer, err := decodeSigned(b); err == nil && (tx == nil || signer == (address{})) {
			t.Errorf("%x is signed by nobody", b)
		}

		tx, ok := decodeTransaction(b)
		if !ok {
			return
		}

		raw := tx.encode()

		reread, ok := decodeTransaction(raw)
		if !ok || reread.owner != tx.owner || reread.to != tx.to || reread.amount != tx.amount ||
			reread.kind != tx.kind ||
			!bytes.Equal(reread.data, tx.data) ||
			!bytes.Equal(reread.memo, tx.memo) ||
			reread.expiration != tx.expiration ||
			reread.feeLimit != tx.feeLimit {
			t.Errorf("%+v is written as %+v", tx, reread)
		}

		to, amount, ok := parseTransferInput(tx.data)
		if ok && !bytes.Equal(transferInput(to, amount)[16:], tx.data[16:]) {
			t.Errorf("call %x is %s to %x", tx.data, amount, to)
		}
	})
}

// FuzzVerify: what passes as the transactions of a block encodes to its root, and has the bytes of its ids.
func FuzzVerify(f *testing.F) {
	node := testDriver(f).nodes.Nodes[0]

	for _, name := range []string{"whole", "part"} {
		f.Add([]byte(realBlocks(f)[name]))
	}

	f.Add(
		[]byte(
			`{"block_header":{"raw_data":{"zk":1}},"transactions":[{"ret":[{"x":1}],"signature":["zz"]}]}`,
		),
	)
	f.Fuzz(func(t *testing.T, text []byte) {
		var block blockJSON
		if json.Unmarshal(text, &block) != nil {
			return
		}

		for k := range block.Transactions {
			if tx, err := block.Transactions[k].parse(node); err == nil && tx.tx != nil &&
				!slices.Equal(tx.owners, []address{tx.tx.owner}) {
				t.Errorf("transaction %s of %x is that of %x", tx.hash, tx.tx.owner, tx.owners)
			}
		}

		unverified, err := block.verify(node)
		if err != nil || unverified != "" || len(block.Transactions) == 0 {
			return
		}

		leaves := make([][32]byte, len(block.Transactions))
		for k := range block.Transactions {
			leaves[k], _ = block.Transactions[k].leaf()
		}

		if root := txRoot(leaves); hex.EncodeToString(root[:]) != block.Header.Raw.TxRoot {
			t.Errorf("the transactions have the root %x, the header %s", root, block.Header.Raw.TxRoot)
		}
	})
}

// FuzzBlock decodes answers of a node as readBlocks does.
func FuzzBlock(f *testing.F) {
	d := testDriver(f)
	node := d.nodes.Nodes[0]
	v := readVectors(f)
	id, parent := "0000000000000007"+emptyTxRoot[:48], "0000000000000006"+emptyTxRoot[:48]

	block := func(x vectorTx) string {
		return `{"blockID":"` + id + `","block_header":{"raw_data":{"number":7,"txTrieRoot":"` + id +
			`","parentHash":"` + parent +
			`","timestamp":1}},"transactions":[{"txID":"` + x.TxID + `","raw_data_hex":"` + x.Raw + `"}]}`
	}
	for _, x := range v.Transactions {
		f.Add(
			[]byte(block(x)),
			[]byte(
				`[{"id":"`+x.TxID+`","fee":5,"blockNumber":7,"receipt":{"result":"SUCCESS"},"log":[{`+
					`"address":"a614f803b6fd780986a42c78ec9c7f77e6ded13c",`+
					`"topics":["`+transferTopic+`","`+emptyTxRoot+`","`+emptyTxRoot+`"],"data":"`+
					emptyTxRoot[:63]+`1"}],`+
					`"internal_transactions":[{"caller_address":"`+nodeHex(
					address{1},
				)+`","transferTo_address":"`+nodeHex(
					address{2},
				)+`","callValueInfo":[{"callValue":5}],"note":"63616c6c"}]}]`,
			),
		)
	}

	f.Add([]byte(`{}`), []byte(`[{}]`))
	f.Fuzz(func(t *testing.T, rawBlock, rawInfos []byte) {
		var (
			block blockJSON
			infos []infoJSON
		)
		if json.Unmarshal(rawBlock, &block) != nil || json.Unmarshal(rawInfos, &infos) != nil {
			return
		}

		if id, ok := block.Header.Raw.id(); ok {
			block.BlockID = id
		}

		ref, err := block.ref(node)
		if err != nil || len(infos) != len(block.Transactions) {
			return
		}

		for k := range block.Transactions {
			tx, err := block.Transactions[k].parse(node)
			if err != nil || infos[k].check(node, tx, ref.Height) != nil {
				continue
			}

			transfers, changes, err := d.transfersOf(node, tx, &infos[k])
			if err != nil {
				continue
			}

			if infos[k].failed() && len(transfers) != 0 {
				t.Errorf("a failed transaction moved %+v", transfers)
			}

			seen := map[uint32]bool{}
			for _, tr := range transfers {
				if seen[tr.Index] || tr.Amount.IsZero() || chain.MaxTransfer.Less(tr.Amount) ||
					tr.TxHash != tx.hash {
					t.Errorf("%+v", transfers)
				}

				seen[tr.Index] = true
				if _, ok := d.network.AssetByID(tr.AssetID); !ok {
					t.Errorf("a transfer of no asset: %+v", tr)
				}
			}

			for _, who := range []address{{1}, {2}} {
				_, _, err := holding{who, d.native}.change([]*scannedBlock{{changes: changes}})
				if err != nil {
					t.Errorf("%v", err)
				}
			}
		}
	})
}
