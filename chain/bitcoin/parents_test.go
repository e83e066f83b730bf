package bitcoin_test

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// serveSends makes a node take transactions whose parents it has, and returns what it took.
func serveSends(t *testing.T, f *fakeNode) (took func() []string) {
	t.Helper()

	var taken []string

	f.on("gettxout", func(params) any { return nil })
	f.on("getrawtransaction", func(p params) any {
		return &rpcError{-5, "No such mempool or blockchain transaction"}
	})
	f.on("sendrawtransaction", func(p params) any {
		var tx wire.MsgTx

		raw, err := hex.DecodeString(p.text(0))
		if err != nil || tx.Deserialize(bytes.NewReader(raw)) != nil {
			return &rpcError{-22, "TX decode failed"}
		}

		for _, in := range tx.TxIn { // the coins of makeTx are always there
			parent := in.PreviousOutPoint.Hash
			if parent[31] != 0 && !slices.Contains(taken, parent.String()) {
				return &rpcError{-25, "bad-txns-inputs-missingorspent"}
			}
		}

		taken = append(taken, tx.TxHash().String())

		return tx.TxHash().String()
	})

	return func() []string { return taken }
}

// signedOf returns a transaction as one of ours.
func signedOf(t *testing.T, tx *wire.MsgTx) chain.Signed {
	t.Helper()

	raw, err := hex.DecodeString(hexOf(t, tx))
	if err != nil {
		t.Fatal(err)
	}

	return chain.Signed{TxHash: tx.TxHash().String(), Raw: raw, From: payee}
}

// childOf returns a transaction that spends the first output of another one.
func childOf(parent *wire.MsgTx) *wire.MsgTx {
	id := parent.TxHash()

	tx := wire.NewMsgTx(2)
	tx.AddTxIn(wire.NewTxIn(wire.NewOutPoint(&id, 0), []byte{1}, nil))
	tx.AddTxOut(wire.NewTxOut(600, payeeScript()))

	return tx
}

// A fork takes payers' transactions out of the chain, and no pool has them. What we sent on top of them goes out again
// with them: their bytes are in the block that left the chain, which the node still has.
func TestLostParentsAreSentAgain(t *testing.T) {
	pay := wire.NewTxOut(700, payeeScript())
	grandparent := makeTx(1, pay)
	parent := childOf(grandparent)
	ours := childOf(parent)

	stale := makeBlock(t, 1, makeReward(pay), grandparent, parent)
	blocks := makeChain(t, 2)

	for name, c := range map[string]struct {
		tips []map[string]any
		sent bool
	}{
		"a block that left the chain": {
			[]map[string]any{
				{"height": 2, "hash": blocks[1].Hash, "branchlen": 0, "status": "active"},
				{"height": 1, "hash": stale.Hash, "branchlen": 1, "status": "valid-fork"},
			},
			true,
		},
		"the header alone": {
			[]map[string]any{{"height": 1, "hash": blocks[0].Hash, "branchlen": 1, "status": "headers-only"}}, false,
		},
		"nothing": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			serveTip(t, f, blocks)
			took := serveSends(t, f)
			f.on("getchaintips", func(params) any { return c.tips })

			inChain := f.methods["getblock"]
			f.on("getblock", func(p params) any {
				if p.text(0) == stale.Hash {
					return stale.raw(t)
				}

				return inChain(p)
			})

			err := newDriver(t, f.config()).Broadcast(t.Context(), signedOf(t, ours))
			if !c.sent {
				mustCode(t, "Broadcast", err, fault.Unavailable, "broadcast_refused")

				if len(took()) != 0 {
					t.Errorf("the node took %v", took())
				}

				return
			}

			want := []string{grandparent.TxHash().String(), parent.TxHash().String(), ours.TxHash().String()}
			if err != nil || !slices.Equal(took(), want) {
				t.Errorf("the node took %v, %v; want %v", took(), err, want)
			}
		})
	}
}

// What a transaction rests on is not looked for while nodes take it, nor where it is in the chain.
func TestParentsInTheChainAreLeftAlone(t *testing.T) {
	f := newFake(t)
	serveTip(t, f, makeChain(t, 2))
	took := serveSends(t, f)

	d := newDriver(t, f.config())

	simple := makeTx(1, wire.NewTxOut(700, payeeScript()))
	if err := d.Broadcast(t.Context(), signedOf(t, simple)); err != nil || f.called("gettxout") != 0 {
		t.Errorf("%v, and %d coins were looked at", err, f.called("gettxout"))
	}

	f.on("gettxout", func(params) any {
		return map[string]any{"bestblock": "", "value": 0.000007, "confirmations": 1}
	})

	other := childOf(makeTx(2, wire.NewTxOut(700, payeeScript())))
	mustCode(
		t, "refused for another reason", d.Broadcast(t.Context(), signedOf(t, other)),
		fault.Unavailable, "broadcast_refused",
	)

	if f.called("getchaintips") != 0 || len(took()) != 1 {
		t.Errorf("blocks were searched %d times, and the node took %v", f.called("getchaintips"), took())
	}
}
