//go:build unix

package canonical_test

// This file is an independent ledger: it walks the canonical chain of a node by plain JSON-RPC. It uses
// neither the driver nor any record of the engine, and computes with math/big.

import (
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
)

// slot is where money arrives: an address and a token's contract, "" for the coin. Both in lower case.
type slot struct{ address, token string }

// byContract is the transaction of coin that arrived by a call inside of one: no block names it.
const byContract = "by contract"

// arrivals are base units by slot and transaction hash. A transaction brings more than nothing or is absent.
type arrivals map[slot]map[string]*big.Int

func (a arrivals) add(s slot, tx string, amount *big.Int) {
	if a[s] == nil {
		a[s] = map[string]*big.Int{}
	}

	if a[s][tx] == nil {
		a[s][tx] = new(big.Int)
	}

	a[s][tx].Add(a[s][tx], amount)
}

// count returns how many arrivals there are.
func (a arrivals) count() (n int) {
	for _, txs := range a {
		n += len(txs)
	}

	return n
}

// sum returns what arrived at a slot.
func (a arrivals) sum(s slot) *big.Int {
	total := new(big.Int)
	for _, amount := range a[s] {
		total.Add(total, amount)
	}

	return total
}

// rawBlock and rawReceipt are what the walk reads.
type rawBlock struct {
	Number, Hash, ParentHash string
	Transactions             []struct{ Hash, From, To, Value string }
}

type rawReceipt struct {
	TransactionHash, Status, GasUsed, EffectiveGasPrice string
	Logs                                                []struct {
		Address, Data string
		Topics        []string
	}
}

// walker walks the chain for some addresses, what is swept from them to a master wallet, and tokens.
type walker struct {
	node
	addresses, tokens map[string]bool
	master            string

	out      arrivals // what the addresses and the wallet sent, gas included
	into     arrivals // the coin that these transactions brought them
	released *big.Int // the coin of these that went from an address to the wallet
	gas      *big.Int // wei that these transactions burnt
}

func newWalker(n node, master string) *walker {
	return &walker{
		node:      n,
		addresses: map[string]bool{},
		tokens:    map[string]bool{},
		master:    master,
		out:       arrivals{},
		into:      arrivals{},
		released:  new(big.Int),
		gas:       new(big.Int),
	}
}

var transferTopic = "0x" + hex.EncodeToString(keccak("Transfer(address,address,uint256)"))

// walk returns what arrived in the blocks after first up to the tip. It fails where the sums differ from the
// balances that the node has at the tip.
func (w *walker) walk(first uint64) arrivals {
	w.t.Helper()

	found, tip, parent := arrivals{}, w.tip(), ""

	for height := first + 1; height <= tip; height++ {
		var block rawBlock
		w.call(&block, "eth_getBlockByNumber", hexOf(height), true)

		if parent != "" && block.ParentHash != parent {
			w.t.Fatalf("block %d is not the child of the one before", height)
		}

		w.read(block, height, found)
		parent = block.Hash
	}

	for address := range w.addresses {
		coins := slot{address, ""}
		rest := new(big.Int).Sub(w.balance("", address, tip), w.balance("", address, first))
		rest.Sub(rest, found.sum(coins))
		rest.Sub(rest, w.into.sum(coins))
		rest.Add(rest, w.out.sum(coins))

		if rest.Sign() > 0 {
			found.add(coins, byContract, rest)
		}

		for token := range w.tokens {
			got, has := found.sum(slot{address, token}), w.balance(token, address, tip)
			if got.Sub(got, w.out.sum(slot{address, token})); got.Cmp(has) != 0 {
				w.t.Fatalf("the walk finds %s of %s at %s, which holds %s", got, token, address, has)
			}
		}
	}

	return found
}

// read adds what a block brought: the value of a transaction, and the sum of its logs to an address minus
// those out of it. What a balance rose less in the block than all its logs say, the latest brought less.
func (w *walker) read(block rawBlock, height uint64, found arrivals) {
	w.t.Helper()

	var receipts []rawReceipt
	w.call(&receipts, "eth_getBlockReceipts", hexOf(height))

	sums, outs, order := arrivals{}, arrivals{}, []string{}

	for i, tx := range block.Transactions {
		if receipts[i].TransactionHash != tx.Hash {
			w.t.Fatalf("receipt %d of block %d is of another transaction", i, height)
		}

		if w.addresses[tx.From] || tx.From == w.master {
			w.addSent(tx.From, tx.To, number(w.t, tx.Value), receipts[i])
			w.addLogs(receipts[i], outs)

			continue
		}

		if receipts[i].Status != "0x1" {
			continue
		}

		order = append(order, tx.Hash)

		if value := number(w.t, tx.Value); value.Sign() > 0 && w.addresses[tx.To] {
			found.add(slot{tx.To, ""}, tx.Hash, value)
		}

		w.addLogs(receipts[i], sums)
	}

	for s, txs := range outs {
		for hash, amount := range txs {
			w.out.add(s, hash, new(big.Int).Neg(amount))
		}
	}

	slices.Reverse(order)

	for s, txs := range sums {
		less := sums.sum(s)
		less.Add(less, outs.sum(s))
		less.Sub(less, w.balance(s.token, s.address, height))
		less.Add(less, w.balance(s.token, s.address, height-1))

		for _, hash := range order {
			amount := txs[hash]
			if amount == nil || amount.Sign() <= 0 {
				continue
			}

			if less.Sign() > 0 {
				cut := new(big.Int).Set(less)
				if cut.Cmp(amount) > 0 {
					cut.Set(amount)
				}

				amount.Sub(amount, cut)
				less.Sub(less, cut)
			}

			if amount.Sign() > 0 {
				found.add(s, hash, amount)
			}
		}
	}
}

// addSent adds the coin that a transaction of an address, or of the wallet, moved and burnt.
func (w *walker) addSent(from, to string, value *big.Int, receipt rawReceipt) {
	w.t.Helper()

	fee := new(big.Int).Mul(number(w.t, receipt.GasUsed), number(w.t, receipt.EffectiveGasPrice))
	w.gas.Add(w.gas, fee)
	w.out.add(slot{from, ""}, receipt.TransactionHash, fee)

	if receipt.Status != "0x1" {
		return
	}

	w.out.add(slot{from, ""}, receipt.TransactionHash, value)
	w.into.add(slot{to, ""}, receipt.TransactionHash, value)

	if to == w.master && w.addresses[from] {
		w.released.Add(w.released, value)
	}
}

// addLogs adds the transfers in a receipt to and from the addresses.
func (w *walker) addLogs(receipt rawReceipt, sums arrivals) {
	w.t.Helper()

	for _, l := range receipt.Logs {
		if !w.tokens[l.Address] || len(l.Topics) != 3 || l.Topics[0] != transferTopic {
			continue
		}

		amount := number(w.t, l.Data)

		if to := addressIn(l.Topics[2]); w.addresses[to] {
			sums.add(slot{to, l.Address}, receipt.TransactionHash, amount)
		}

		if from := addressIn(l.Topics[1]); w.addresses[from] {
			sums.add(slot{from, l.Address}, receipt.TransactionHash, new(big.Int).Neg(amount))
		}
	}
}

func addressIn(topic string) string { return "0x" + strings.ToLower(topic[len(topic)-40:]) }
