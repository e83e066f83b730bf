package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
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
