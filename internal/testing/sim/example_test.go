package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// A payment through a fork: it is in the pool, then in a block. The fork returns it to the pool, and
// another block includes it at the same index.
func Example() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	network := sim.New(sim.Config{Clock: func() time.Time { return now }})
	shop := network.NewAddress()

	hash := network.Pay(shop, "USDX", chain.Units(5_000_000))
	pool, _ := network.Pool(ctx)
	fmt.Println("waiting:", len(pool), "balance:", network.Balance(shop, "USDX"))

	network.Mine(1)
	found, _ := network.Transaction(ctx, hash)
	fmt.Println(
		"in block", found.Block.Height, "index", found.Transfers[0].Index, "balance:",
		network.Balance(shop, "USDX"),
	)

	network.Fork(sim.Fork{Depth: 1}) // the payment returns to the pool
	found, _ = network.Transaction(ctx, hash)
	fmt.Println("out of its block:", found.Block.IsZero(), "balance:", network.Balance(shop, "USDX"))

	network.Mine(1)
	found, _ = network.Transaction(ctx, hash)
	fmt.Println(
		"in block", found.Block.Height, "index", found.Transfers[0].Index, "balance:",
		network.Balance(shop, "USDX"),
	)

	// Output:
	// waiting: 1 balance: 0
	// in block 1 index 1 balance: 5000000
	// out of its block: true balance: 0
	// in block 3 index 1 balance: 5000000
}

// A crash test: the node took the transaction, but the answer got lost.
func ExampleChain_LoseNextResponses() {
	ctx := context.Background()
	network := sim.New(sim.Config{})
	keys := sim.NewSigner(1, nil)
	wallet := keys.Party(chain.RoleMaster, 0, network)
	network.Fund(wallet.Address, "SIM", chain.Pow10(18))

	native, _ := network.Network().Native()
	order := chain.Order{
		From:    wallet,
		MaxFee:  chain.Pow10(16),
		Outputs: []chain.Output{{To: network.NewAddress(), AssetID: native.ID, Amount: chain.Pow10(17)}},
	}
	unsigned, _ := network.Build(ctx, order)
	signatures, _ := keys.Sign(ctx, chain.SignRequest{Payloads: unsigned.Payloads})
	key, _ := keys.PublicKey(ctx, wallet.Key)
	tx, _ := network.Assemble(order, unsigned, []chain.PublicKey{key}, signatures)

	network.LoseNextResponses(1)
	err := network.Broadcast(ctx, tx)
	status, _ := network.Status(ctx, tx)
	fmt.Println("an error:", err != nil, "and the transaction is", status.State)

	// Output:
	// an error: true and the transaction is pooled
}

// A payer whose contract pays another amount on another branch: the pool shows only a claim.
func ExampleChain_PayVariable() {
	ctx := context.Background()
	network := sim.New(sim.Config{})
	shop := network.NewAddress()
	token, _ := network.Network().Asset("USDX")
	pay := func(amount uint64) chain.Output {
		return chain.Output{To: shop, AssetID: token.ID, Amount: chain.Units(amount)}
	}

	hash := network.PayVariable(pay(100), func(_, branch uint64) sim.Result {
		if branch == 0 {
			return sim.Result{Outputs: []chain.Output{pay(100)}}
		}

		return sim.Result{Outputs: []chain.Output{pay(1)}}
	})
	network.Mine(1)
	found, _ := network.Transaction(ctx, hash)
	fmt.Println("paid:", found.Transfers[0].Amount)

	network.Fork(sim.Fork{Depth: 1, Fate: sim.Reinclude})
	found, _ = network.Transaction(ctx, hash)
	fmt.Println("paid on the new branch:", found.Transfers[0].Amount)

	// Output:
	// paid: 100
	// paid on the new branch: 1
}

// A node that makes up a block with a payment: the other node has another block there.
func ExampleChain_SetNode() {
	ctx := context.Background()
	network := sim.New(sim.Config{Nodes: 2})
	shop := network.NewAddress()
	token, _ := network.Network().Asset("USDX")
	network.Mine(3)

	fake := chain.Transfer{TxHash: "made-up", Index: 1, To: shop, AssetID: token.ID, Amount: chain.Units(100)}
	network.SetNode(0, sim.NodeFaults{
		Blocks: map[uint64]chain.Block{2: {Transfers: []chain.Transfer{fake}}},
	})

	blocks, _ := network.Blocks(ctx, 2, 2)
	fmt.Println("payments shown:", len(blocks[0].Transfers))

	_, err := network.AgreedBlock(ctx, blocks[0].Ref, nil)
	fmt.Println("confirmed by another node:", err == nil)

	// Output:
	// payments shown: 1
	// confirmed by another node: false
}
