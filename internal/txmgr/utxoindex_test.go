package txmgr_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/store"
)

// coinIndex is a store with a UTXO index on a network that spends outputs.
type coinIndex struct {
	*harness
	t       *testing.T
	network chain.Network
	outputs *outputs
	ours    map[chain.Address]chain.Party
}

func newCoinIndex(t *testing.T) *coinIndex {
	w, driver := newOutputs(t, 0)
	master := w.master()

	return &coinIndex{
		harness: w,
		t:       t,
		network: driver.Network(),
		outputs: driver,
		ours: map[chain.Address]chain.Party{
			master.Address: master,
			"deposit":      {Address: "deposit", Key: chain.KeyRef{Role: chain.RoleDeposit, Index: 3}},
		},
	}
}

func (k *coinIndex) parties(
	_ context.Context,
	addresses []chain.Address,
) (map[chain.Address]chain.Party, error) {
	found := map[chain.Address]chain.Party{}

	for _, a := range addresses {
		if p, ok := k.ours[a]; ok {
			found[a] = p
		}
	}

	return found, nil
}

// take stores a batch twice, as a closure may run twice and a batch be read again.
func (k *coinIndex) take(b follow.Batch) string {
	k.t.Helper()

	b.Network = k.network
	k.setScript(b)

	for range 2 {
		if err := k.update(k.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
			if err := moveCursor(ctx, tx.(*listening).Tx, b); err != nil {
				return err
			}

			if err := k.outbox.RecordOutgoingTx(ctx, tx, b, k.parties); err != nil {
				return err
			}

			if err := k.outbox.ApplyForkTx(ctx, tx, b); err != nil {
				return err
			}

			if err := k.outbox.RewindBalancesTx(ctx, tx, b); err != nil {
				return err
			}

			return k.outbox.IndexCoinsTx(ctx, tx, b, k.parties)
		}); err != nil {
			k.t.Fatal(err)
		}
	}

	return k.state()
}

// state lists the coins: where they are, who holds and who spent them.
func (k *coinIndex) state() string {
	k.t.Helper()

	above, err := k.store.CoinsAbove(k.t.Context(), network, 0)
	if err != nil {
		k.t.Fatal(err)
	}

	waiting, err := k.store.UnconfirmedCoins(k.t.Context(), network)
	if err != nil {
		k.t.Fatal(err)
	}

	var out []string

	for _, c := range append(above, waiting...) {
		s := fmt.Sprintf("%s:%d@%d", c.Outpoint.TxHash, c.Outpoint.Vout, c.Height)
		if c.Depth > 0 {
			s += fmt.Sprintf(" depth %d", c.Depth)
		}

		if c.SpentBy != "" {
			s += fmt.Sprintf(" spent by %s@%d", c.SpentBy, c.SpentAt)
		}

		out = append(out, s)
	}

	slices.Sort(out)

	return strings.Join(out, ", ")
}

func (k *coinIndex) want(what, got, want string) {
	k.t.Helper()

	if got != want {
		k.t.Errorf("%s: the book has\n  %s, want\n  %s", what, got, want)
	}
}

func (k *coinIndex) pays(hash string, to chain.Address) chain.Transfer {
	native, _ := k.network.Native()
	return chain.Transfer{TxHash: hash, To: to, AssetID: native.ID, Amount: coin(5)}
}

func spends(by string, hashes ...string) (out []chain.Spend) {
	for _, h := range hashes {
		out = append(out, chain.Spend{Outpoint: chain.Outpoint{TxHash: h}, By: by})
	}

	return out
}

func block(height uint64, branch string, transfers []chain.Transfer, spent ...chain.Spend) chain.Block {
	return chain.Block{
		Ref: chain.Ref{
			Height: height,
			Hash:   fmt.Sprint(branch, height),
			Time:   start.Add(time.Duration(height) * time.Minute),
		},
		Transfers: transfers,
		Spent:     spent,
	}
}

func TestCoinsFollowTheBlocks(t *testing.T) {
	k := newCoinIndex(t)
	master := k.harness.master().Address
	k.want(
		"other people's outputs",
		k.take(
			follow.Batch{
				Blocks: []chain.Block{
					block(1, "a", []chain.Transfer{k.pays("x", "stranger")}, spends("x", "w")...),
				},
			},
		),
		"",
	)
	k.want("a deposit and a top-up", k.take(follow.Batch{
		Blocks: []chain.Block{
			block(2, "a", []chain.Transfer{k.pays("d", "deposit")}),
			block(3, "a", []chain.Transfer{k.pays("m", master)}),
		},
	}), "d:0@2, m:0@3")
	k.want("made and spent in one block", k.take(follow.Batch{
		Blocks: []chain.Block{
			block(
				4,
				"a",
				[]chain.Transfer{k.pays("n", master)},
				append(spends("z", "n"), spends("s", "d")...)...),
		},
	}), "d:0@2 spent by s@4, m:0@3, n:0@4 spent by z@4")
	k.want("a fork takes the last block away", k.take(follow.Batch{
		Rewound:    true,
		ForkedFrom: chain.Ref{Height: 3, Hash: "a3"},
		PoolRead:   true,
		Blocks:     []chain.Block{block(4, "b", nil)},
	}), "d:0@2, m:0@3")
	k.want("the other branch spends it, too", k.take(follow.Batch{
		Blocks: []chain.Block{
			block(5, "b", nil, spends("s", "d")...),
		},
	}), "d:0@2 spent by s@5, m:0@3")
	k.want("a deeper fork, and the deposit is in another block there", k.take(follow.Batch{
		Rewound:    true,
		ForkedFrom: chain.Ref{Height: 1, Hash: "a1"},
		Blocks: []chain.Block{
			block(2, "c", nil),
			block(3, "c", []chain.Transfer{k.pays("d", "deposit")}),
		},
	}), "d:0@3, m:0@0")
}

// What a batch makes and spends itself is a row, too; what strangers make and spend is none.
func TestRowsOfCoinsOfOneBatch(t *testing.T) {
	k := newCoinIndex(t)
	k.scripted(follow.Batch{Blocks: []chain.Block{ // nothing is indexed yet
		block(2, "a", []chain.Transfer{k.pays("n", k.master().Address), k.pays("s", "stranger")}),
		block(3, "a", nil, spends("z", "n", "s")...),
	}})

	rows, err := k.store.OutgoingAbove(t.Context(), network, 0)
	if err != nil || len(rows) != 1 || rows[0].TxHash != "z" || rows[0].Key != "n:0" ||
		rows[0].Address != k.master().Address {
		t.Errorf("the rows are %+v %v", rows, err)
	}
}

// Change of ours may be spent before its block, up to a depth; what others send may not.
func TestChangeInThePool(t *testing.T) {
	k := newCoinIndex(t)
	master := k.harness.master()
	own := func(hashes ...string) {
		if err := k.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			for _, h := range hashes {
				if err := tx.PutAttemptHash(ctx, network, h, h, wallet.Payout); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	pooled := func(hash string, spent ...string) chain.PoolTx {
		return chain.PoolTx{
			TxHash:    hash,
			Transfers: []chain.Transfer{k.pays(hash, master.Address)},
			Spent:     spends(hash, spent...),
		}
	}

	own("p1", "p2", "p3")
	k.want(
		"ours, not theirs",
		k.take(
			follow.Batch{
				PoolRead: true,
				Pool:     []chain.PoolTx{pooled("p2", "p1"), pooled("foreign"), pooled("p1", "m")},
			},
		),
		"p1:0@0 depth 1, p2:0@0 depth 2",
	)
	k.want(
		"one was replaced",
		k.take(follow.Batch{PoolRead: true, Pool: []chain.PoolTx{pooled("p1", "m"), pooled("p3", "p1")}}),
		"p1:0@0 depth 1, p3:0@0 depth 2",
	)
	k.want("one got its block", k.take(follow.Batch{
		PoolRead: true,
		Pool:     []chain.PoolTx{pooled("p3", "p1")},
		Blocks:   []chain.Block{block(7, "a", []chain.Transfer{k.pays("p1", master.Address)})},
	}), "p1:0@7, p3:0@0 depth 1")
	k.want(
		"a pool that was not read says nothing",
		k.take(follow.Batch{Blocks: []chain.Block{block(8, "a", nil)}}), "p1:0@7, p3:0@0 depth 1",
	)

	var chained []chain.PoolTx

	last := "p1"

	for i := range 24 {
		hash := fmt.Sprintf("c%02d", i)
		own(hash)
		chained, last = append(chained, pooled(hash, last)), hash
	}

	k.take(follow.Batch{PoolRead: true, Pool: chained})
	p := k.payout("SIM", coin(1))
	k.work()
	// p1 is in a block, and twenty of the chain may be built upon.
	if got := k.offers(p.Order.Outputs[0].To); got != 21 {
		t.Errorf("%d coins were offered, want 21", got)
	}
}

func TestBalanceIsTheSumOfCoinsInBlocks(t *testing.T) {
	k := newCoinIndex(t)
	master := k.harness.master()
	balance := func() wallet.Balance {
		t.Helper()

		if err := k.outbox.RefreshBalances(t.Context(), network, master); err != nil {
			t.Fatal(err)
		}

		native, _ := k.network.Native()

		b, _, err := k.store.Balance(t.Context(), network, master.Address, native.ID)
		if err != nil {
			t.Fatal(err)
		}

		return b
	}

	k.take(
		follow.Batch{
			Blocks: []chain.Block{
				block(2, "a", []chain.Transfer{k.pays("m", master.Address), k.pays("n", master.Address)}),
			},
		},
	)

	if b := balance(); b.OnChain != coin(10) || b.At.Height != 2 {
		t.Errorf("two coins come to %s at block %d", b.OnChain, b.At.Height)
	}

	k.take(
		follow.Batch{
			PoolRead: true,
			Blocks:   []chain.Block{block(3, "a", nil, spends("elsewhere", "m")...)},
			Pool:     []chain.PoolTx{{TxHash: "f", Transfers: []chain.Transfer{k.pays("f", master.Address)}}},
		},
	)

	if b := balance(); b.OnChain != coin(5) || b.At.Height != 3 {
		t.Errorf("one coin and a foreign one in the pool come to %s at block %d", b.OnChain, b.At.Height)
	}

	err := k.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutAttemptHash(ctx, network, "own", "own", wallet.Payout)
	})
	if err != nil {
		t.Fatal(err)
	}

	change := chain.PoolTx{
		TxHash:    "own",
		Transfers: []chain.Transfer{k.pays("own", master.Address)},
		Spent:     spends("own", "n"),
	}
	k.take(
		follow.Batch{PoolRead: true, Blocks: []chain.Block{block(4, "a", nil)}, Pool: []chain.PoolTx{change}},
	)

	if b := balance(); b.OnChain != coin(5) || b.At.Height != 4 {
		t.Errorf("one coin, which waiting change is made of, comes to %s at block %d", b.OnChain, b.At.Height)
	}
}
