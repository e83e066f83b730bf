package sim_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
)

// A payment through a fork: it is in a block, which the fork replaces, and then in another one.
func Example() {
	network := sim.New(sim.Config{})
	shop := network.NewAddress()

	network.Pay(shop, "USDX", chain.Units(5_000_000))
	fmt.Println("waiting:", network.Balance(shop, "USDX"))

	network.Mine(1)
	fmt.Println("in a block:", network.Balance(shop, "USDX"))

	network.Fork(1, sim.ReturnOrphans)
	fmt.Println("out of its block:", network.Balance(shop, "USDX"))

	network.Mine(1)
	fmt.Println("in another block:", network.Balance(shop, "USDX"))

	// Output:
	// waiting: 0
	// in a block: 5000000
	// out of its block: 0
	// in another block: 5000000
}

// A node that is down, and one that is back.
func ExampleChain_Fail() {
	ctx := context.Background()
	network := sim.New(sim.Config{})

	network.Fail(errors.New("connection refused"))
	_, err := network.Driver().Head(ctx)
	fmt.Println(err)

	network.Fail(nil)
	_, err = network.Driver().Head(ctx)
	fmt.Println(err)

	// Output:
	// connection refused
	// <nil>
}
