package ingest_test

import (
	"context"
	"fmt"
	"math/big"
	"sort"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// This file is an independent ledger: it walks the canonical chain with the network's own calls, and shares
// no code with the library. It computes with math/big.

// slot is where money arrives: an address and an asset id.
type slot struct{ address, asset string }

// arrival is money that one transaction brought to a slot in the canonical chain.
type arrival struct {
	slot
	tx     string
	height uint64
	amount *big.Int
}

// walk returns what arrived at the addresses in every block up to the tip, one arrival per transaction and
// slot. A transaction brings the sum of its logs to an address minus those out of it; never less than
// nothing. What the balance of a token rose less in the block than all its logs say, the latest brought less.
// What the senders send, which are our own wallets, is no arrival.
func walk(t testing.TB, c *sim.Chain, addresses, senders, tokens map[string]bool) []arrival {
	t.Helper()

	head, err := c.Head(context.Background())
	if err != nil {
		t.Fatal(err)
	}

	var (
		all      []arrival
		previous chain.Ref
	)

	for height := uint64(1); height <= head.Tip.Height; height++ {
		blocks, err := c.Blocks(context.Background(), height, height)
		if err != nil {
			t.Fatal(err)
		}

		block := blocks[0]
		if height > 1 && block.Parent != previous.Hash {
			t.Fatalf("block %d is not the child of block %d", height, height-1)
		}

		all = append(all, arrivalsIn(t, c, block, addresses, senders, tokens)...)
		previous = block.Ref
	}

	return all
}

func arrivalsIn(
	t testing.TB,
	c *sim.Chain,
	block chain.Block,
	addresses, senders, tokens map[string]bool,
) []arrival {
	t.Helper()

	sums, total := map[string]map[slot]*big.Int{}, map[slot]*big.Int{}

	var order []string

	touch := func(tx string, s slot, amount *big.Int) {
		if !addresses[s.address] {
			return
		}

		if sums[tx] == nil {
			sums[tx] = map[slot]*big.Int{}
			order = append(order, tx)
		}

		if sums[tx][s] == nil {
			sums[tx][s] = new(big.Int)
		}

		if total[s] == nil {
			total[s] = new(big.Int)
		}

		sums[tx][s].Add(sums[tx][s], amount)
		total[s].Add(total[s], amount)
	}

	for _, transfer := range block.Transfers {
		amount := number(t, transfer.Amount)
		touch(transfer.TxHash, slot{string(transfer.To), transfer.AssetID}, amount)
		touch(transfer.TxHash, slot{string(transfer.From), transfer.AssetID}, new(big.Int).Neg(amount))
	}

	for _, spend := range block.Spent {
		if senders[string(spend.Sender)] {
			delete(sums, spend.By)
		}
	}

	missing := map[slot]*big.Int{}

	for s, logged := range total {
		if tokens[s.asset] {
			missing[s] = new(big.Int).Sub(logged, riseOf(t, c, block, s))
		}
	}

	var out []arrival

	for i := len(order) - 1; i >= 0; i-- {
		for s, sum := range sums[order[i]] {
			if less := missing[s]; less != nil && less.Sign() > 0 && sum.Sign() > 0 {
				if less.Cmp(sum) > 0 {
					less = new(big.Int).Set(sum)
				}

				sum = new(big.Int).Sub(sum, less)
				missing[s] = new(big.Int).Sub(missing[s], less)
			}

			if sum.Sign() > 0 {
				out = append(out, arrival{s, order[i], block.Height, sum})
			}
		}
	}

	sort.Slice(out, func(i, j int) bool { return fmt.Sprint(out[i]) < fmt.Sprint(out[j]) })

	return out
}

// riseOf returns by how much a balance rose in a block.
func riseOf(t testing.TB, c *sim.Chain, block chain.Block, s slot) *big.Int {
	t.Helper()

	var at [2]*big.Int

	for i, ref := range []chain.Ref{{Height: block.Height - 1, Hash: block.Parent}, block.Ref} {
		held, err := c.Balances(
			context.Background(), ref, []chain.Holding{{Address: chain.Address(s.address), AssetID: s.asset}},
		)
		if err != nil {
			t.Fatal(err)
		}

		at[i] = number(t, held[0])
	}

	return at[1].Sub(at[1], at[0])
}

func number(t testing.TB, a chain.Amount) *big.Int {
	t.Helper()

	n, ok := new(big.Int).SetString(a.String(), 10)
	if !ok {
		t.Fatalf("amount %q is no number", a)
	}

	return n
}
