package bitcoin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
)

// ratedNode returns a fake node that says an estimate and a relay floor, in bitcoin per 1000 virtual bytes.
func ratedNode(t *testing.T, estimate, floor string) *fakeNode {
	t.Helper()

	f := newFake(t)
	f.on("estimatesmartfee", func(params) any { return map[string]any{"feerate": json.Number(estimate)} })
	f.on("getmempoolinfo", func(params) any {
		return map[string]json.Number{
			"mempoolminfee":       json.Number(floor),
			"minrelaytxfee":       "0.00001",
			"incrementalrelayfee": "0.00001",
		}
	})

	return f
}

// estimateAt returns what a payment should cost at most, in satoshi.
func estimateAt(t *testing.T, d *bitcoin.Driver) (chain.Amount, error) {
	t.Helper()

	return d.EstimateFee(t.Context(), chain.Order{
		From:    chain.Party{Address: payee},
		Outputs: []chain.Output{{To: payee, AssetID: d.Network().Assets[0].ID, Amount: chain.Units(50_000)}},
		Coins: []chain.Coin{{
			Outpoint: chain.Outpoint{TxHash: strings.Repeat("1", 64)},
			Owner:    chain.Party{Address: payee},
			Amount:   chain.Units(100_000_000),
			Height:   1,
		}},
	})
}

// A rate above what verified blocks allow, and above the configured rate without estimates, is the lower of two nodes';
// one node alone says no more than that.
func TestOneNodeNamesNoRateAloneAboveWhatBlocksPaid(t *testing.T) {
	const honest, lie, floor = "0.00008", "0.9", "0.00001"

	node := func(estimate, floor string) *fakeNode { return ratedNode(t, estimate, floor) }

	want := func(rate uint64) chain.Amount { return chain.Units((rate*141 + 999) / 1000).Mul(3) }

	for name, c := range map[string]struct {
		nodes []*fakeNode
		rate  uint64
		word  error
	}{
		"an honest node":         {[]*fakeNode{node(honest, floor)}, 8_000, nil},
		"estimate, alone":        {[]*fakeNode{node(lie, floor)}, 10_000, nil},
		"estimate, first of two": {[]*fakeNode{node(lie, floor), node(honest, floor)}, 8_000, nil},
		"estimate, second":       {[]*fakeNode{node(honest, floor), node(lie, floor)}, 8_000, nil},
		"both say more": {
			[]*fakeNode{node("0.0004", floor), node("0.0003", floor)}, 30_000, nil,
		},
		"floor, alone":        {[]*fakeNode{node(honest, lie)}, 0, fault.Limited},
		"floor, first of two": {[]*fakeNode{node(honest, lie), node(honest, floor)}, 8_000, nil},
		"floor, second":       {[]*fakeNode{node(honest, floor), node(honest, lie)}, 8_000, nil},
	} {
		d := newDriver(t, c.nodes[0].config(), func(config *bitcoin.Config) {
			for _, node := range c.nodes[1:] {
				config.RPCs = append(config.RPCs, node.URL)
			}
		})

		fee, err := estimateAt(t, d)
		t.Logf("%-24s at most %6s satoshi, %v", name, fee, err)

		if c.word != nil {
			if !errors.Is(err, c.word) {
				t.Errorf("%s: %s, %v, want %v", name, fee, err, c.word)
			}

			continue
		}

		if err != nil || fee != want(c.rate) {
			t.Errorf("%s: %s, %v, want %s", name, fee, err, want(c.rate))
		}
	}
}

// What the miner of a verified block claimed beyond its subsidy shows what its transactions paid. One node may say
// twice that alone where the block was full, and no more than that where it had room: it may have held our own alone.
func TestVerifiedBlocksShowWhatIsPaid(t *testing.T) {
	for name, c := range map[string]struct {
		filling int // bytes
		times   uint64
	}{
		"a block with room": {0, 1},
		"a full block":      {600_000, 2},
	} {
		paid := makeTx(1, wire.NewTxOut(1_000, payeeScript()), wire.NewTxOut(0, make([]byte, c.filling)))
		weight := int64(3*paid.SerializeSizeStripped() + paid.SerializeSize())

		reward := wire.NewMsgTx(2)
		reward.AddTxIn(wire.NewTxIn(wire.NewOutPoint(&chainhash.Hash{}, wire.MaxPrevOutIndex), nil, nil))
		reward.AddTxOut(
			wire.NewTxOut(50*100_000_000+20*(weight+3)/4, payeeScript()),
		) // 20 satoshi a virtual byte

		f := ratedNode(t, "0.9", "0.00001")
		block := makeBlock(t, 1, reward, paid)

		f.on("getblockhash", func(p params) any {
			if string(p[0]) == "1" {
				return block.Hash
			}

			return chaincfg.RegressionNetParams.GenesisHash.String()
		})
		f.on("getblock", func(params) any { return block })

		d := newDriver(t, f.config())
		if _, err := d.Blocks(t.Context(), 1, 1); err != nil {
			t.Fatal(name, err)
		}

		fee, err := estimateAt(t, d)
		low, high := chain.Units(39*141*3/2).Mul(c.times), chain.Units(41*141*3/2).Mul(c.times)

		if err != nil || fee.Less(low) || high.Less(fee) {
			t.Errorf(
				"%s: %s, %v, want %d times the rate of 20 satoshi a virtual byte",
				name,
				fee,
				err,
				c.times,
			)
		}
	}
}
