//go:build unix

package canonical_test

// This file is an independent ledger of outputs: it walks the canonical chain of bitcoind by plain JSON-RPC, and
// uses neither the driver nor any record of the engine.

import (
	"encoding/json"
	"math/big"
)

// outpoint and output are what the walk reads.
type outpoint struct {
	tx   string
	vout int
}

type output struct {
	address string
	satoshi int64
	height  uint64
	reward  bool
}

// outputLedger is what the canonical chain holds of some addresses, and what arrived at any.
type outputLedger struct {
	node bitcoinNode
	ours map[string]bool
	tip  uint64
	// all are the outputs that no block spends.
	all map[outpoint]output
	// arrived are satoshi by address and transaction.
	arrived map[string]map[string]int64
	// fees are what transactions paid that spend outputs of ours, by hash.
	fees map[string]int64
}

// walkOutputs walks the whole chain.
func walkOutputs(n bitcoinNode, ours map[string]bool) *outputLedger {
	n.t.Helper()

	l := &outputLedger{
		node:    n,
		ours:    ours,
		tip:     n.height(),
		all:     map[outpoint]output{},
		arrived: map[string]map[string]int64{},
		fees:    map[string]int64{},
	}

	parent := n.hashAt(0)

	for height := uint64(1); height <= l.tip; height++ {
		hash := n.hashAt(height)
		l.read(height, hash, parent)
		parent = hash
	}

	return l
}

// read adds a block, which has to be the child of the one before.
func (l *outputLedger) read(height uint64, hash, parent string) {
	l.node.t.Helper()

	var block struct {
		Parent string `json:"previousblockhash"`
		Tx     []struct {
			Txid string
			Vin  []struct {
				Txid     string
				Vout     int
				Coinbase string
			}
			Vout []struct {
				Value        json.Number
				ScriptPubKey struct{ Address string }
			}
		}
	}
	l.node.call(&block, "getblock", hash, 2)

	if block.Parent != parent {
		l.node.t.Fatalf("block %d is not the child of the one before", height)
	}

	for _, tx := range block.Tx {
		in, out, spendsOurs, reward := int64(0), int64(0), false, false

		for _, spent := range tx.Vin {
			if reward = spent.Coinbase != ""; reward {
				continue
			}

			at := outpoint{spent.Txid, spent.Vout}

			was, unspent := l.all[at]
			if !unspent {
				l.node.t.Fatalf("transaction %s spends an output that is none", tx.Txid)
			}

			in, spendsOurs = in+was.satoshi, spendsOurs || l.ours[was.address]
			delete(l.all, at)
		}

		for i, made := range tx.Vout {
			o := output{made.ScriptPubKey.Address, satoshiOf(l.node, made.Value), height, reward}
			out += o.satoshi
			l.all[outpoint{tx.Txid, i}] = o
			l.arrive(o.address, tx.Txid, o.satoshi)
		}

		if spendsOurs {
			l.fees[tx.Txid] = in - out
		}
	}
}

func (l *outputLedger) arrive(address, tx string, satoshi int64) {
	if l.arrived[address] == nil {
		l.arrived[address] = map[string]int64{}
	}

	if satoshi > 0 {
		l.arrived[address][tx] += satoshi
	}
}

// received returns what ever arrived at an address.
func (l *outputLedger) received(address string) (sum int64) {
	for _, satoshi := range l.arrived[address] {
		sum += satoshi
	}

	return sum
}

// spendable returns what an address holds, without block rewards that are immature in the next block.
func (l *outputLedger) spendable(address string) (sum int64) {
	const maturity = 100

	for _, o := range l.all {
		if o.address == address && (!o.reward || l.tip+1 >= o.height+maturity) {
			sum += o.satoshi
		}
	}

	return sum
}

// satoshiOf returns a number of whole bitcoins in satoshi.
func satoshiOf(n bitcoinNode, value json.Number) int64 {
	n.t.Helper()

	v, ok := new(big.Rat).SetString(value.String())
	if !ok {
		n.t.Fatalf("%q is no amount", value)
	}

	v.Mul(v, big.NewRat(1e8, 1))

	if !v.IsInt() {
		n.t.Fatalf("%s are no whole satoshi", value)
	}

	return v.Num().Int64()
}
