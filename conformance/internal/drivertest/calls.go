package drivertest

// What holds for every call that reaches a node: contexts, outages, concurrency.

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var callTests = []testCase{
	{"EndedContextIsHonoured", nil, testCallsCanceled},
	{"NoNodeIsUnavailable", []Capability{UnreachableNode}, testCallsUnavailable},
	{"NodeOfAnotherNetworkIsStopped", []Capability{Checker, WrongNode}, testCallsMisconfigured},
	{"ConcurrentCalls", nil, testCallsConcurrent},
}

// nodeCall is one call of a driver; answer is what it returned beside the error.
type nodeCall struct {
	name string
	call func(ctx context.Context, d chain.Driver) (answer any, err error)
}

// calls lists every call of the driver that reaches a node, with arguments that make it succeed.
func (e *env) calls() []nodeCall {
	e.t.Helper()
	e.mine(1)
	tip := e.head().Tip
	to := e.stranger()
	hash := e.pay(to, e.native, amount(e.native))
	e.mine(1)

	calls := []nodeCall{
		{"Head", func(ctx context.Context, d chain.Driver) (any, error) { return d.Head(ctx) }},
		{"RefAt", func(ctx context.Context, d chain.Driver) (any, error) { return d.RefAt(ctx, tip.Height) }},
	}
	add := func(c Capability, name string, call func(ctx context.Context, d chain.Driver) (any, error)) {
		if e.has(c) {
			calls = append(calls, nodeCall{name, call})
		}
	}
	add(
		Checker, "Check",
		func(ctx context.Context, d chain.Driver) (any, error) { return nil, d.(chain.Checker).Check(ctx) },
	)
	add(BlockScanner, "Blocks", func(ctx context.Context, d chain.Driver) (any, error) {
		return d.(chain.BlockScanner).Blocks(ctx, tip.Height, tip.Height)
	})
	add(AddressScanner, "TransfersTo", func(ctx context.Context, d chain.Driver) (any, error) {
		return d.(chain.AddressScanner).TransfersTo(ctx, []chain.Address{to}, tip.Height, tip.Height)
	})
	add(
		Mempool, "Pool",
		func(ctx context.Context, d chain.Driver) (any, error) { return d.(chain.Mempool).Pool(ctx) },
	)
	add(Finder, "Transaction", func(ctx context.Context, d chain.Driver) (any, error) {
		return d.(chain.Finder).Transaction(ctx, hash)
	})
	add(Balancer, "Balances", func(ctx context.Context, d chain.Driver) (any, error) {
		return d.(chain.Balancer).Balances(ctx, tip, []chain.Holding{{Address: to, AssetID: e.native.ID}})
	})
	add(CoinSource, "Unspent", func(ctx context.Context, d chain.Driver) (any, error) {
		_, amounts, err := d.(chain.CoinReader).Unspent(ctx, []chain.Outpoint{{TxHash: hash}})
		return amounts, err
	})
	add(
		Nonces, "Nonce",
		func(ctx context.Context, d chain.Driver) (any, error) { return d.(chain.Nonces).Nonce(ctx, to) },
	)

	if e.has(Sender) {
		o := e.order(e.wallet(), e.native, e.stranger(), amount(e.native))
		tx := e.sign(o)

		add(FeeEstimator, "EstimateFee", func(ctx context.Context, d chain.Driver) (any, error) {
			return d.(chain.FeeEstimator).EstimateFee(ctx, o)
		})
		add(
			Sender, "Build",
			func(ctx context.Context, d chain.Driver) (any, error) { return d.(chain.Sender).Build(ctx, o) },
		)
		add(Sender, "Broadcast", func(ctx context.Context, d chain.Driver) (any, error) {
			return nil, d.(chain.Sender).Broadcast(ctx, tx)
		})
		add(
			Sender,
			"Status",
			func(ctx context.Context, d chain.Driver) (any, error) { return d.(chain.Sender).Status(ctx, tx) },
		)
	}

	if e.has(Sweeper) {
		r := e.release(e.native, amount(e.native).Mul(100), chain.Amount{})

		add(Sweeper, "PlanRelease", func(ctx context.Context, d chain.Driver) (any, error) {
			return d.(chain.Sweeper).PlanRelease(ctx, r)
		})
	}

	return calls
}

func testCallsCanceled(e *env) {
	for _, c := range e.calls() {
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()

		if _, err := c.call(ctx, e.Driver); !errors.Is(err, context.Canceled) {
			e.t.Errorf("%s with a canceled context: %v, want an error that is context.Canceled", c.name, err)
		}

		if answer, err := c.call(e.ctx, e.Driver); err != nil {
			e.t.Errorf("%s after that: %v, %v", c.name, answer, err)
		}
	}
}

func testCallsUnavailable(e *env) {
	for _, c := range e.calls() {
		answer, err := c.call(e.ctx, e.Unreachable)
		if !errors.Is(err, fault.Unavailable) {
			e.t.Errorf("%s without a node: %v, want fault.Unavailable", c.name, err)
		}

		if errors.Is(err, fault.Invalid) || errors.Is(err, fault.NotFound) {
			e.t.Errorf("%s without a node: %v decides something that nobody knows", c.name, err)
		}

		if answer != nil && !reflect.ValueOf(answer).IsZero() {
			e.t.Errorf("%s without a node guessed %+v", c.name, answer)
		}
	}
}

func testCallsMisconfigured(e *env) {
	checker, ok := e.Misconfigured.(chain.Checker)
	if !ok {
		e.t.Fatal("DriverHarness.Misconfigured is not a chain.Checker, though the driver is")
	}

	e.wantFault(
		"Check of a node of another network",
		checker.Check(e.ctx), fault.Stopped, "chain_id_mismatch",
	)
}

func testCallsConcurrent(e *env) {
	calls := e.calls()

	var wg sync.WaitGroup

	for range 4 {
		for _, c := range calls {
			wg.Go(func() {
				if _, err := c.call(e.ctx, e.Driver); err != nil {
					e.t.Errorf("%s beside other calls: %v", c.name, err)
				}
			})
		}
	}

	wg.Wait()
}
