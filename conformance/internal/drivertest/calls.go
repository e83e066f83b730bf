package drivertest

import (
	"context"
	"errors"
	"reflect"
	"slices"
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

// callArgs are arguments that make every call succeed.
type callArgs struct {
	block   chain.Ref
	to      chain.Address
	txHash  string // of a payment to that address
	asset   chain.Asset
	order   chain.Order
	tx      chain.Signed
	release chain.SweepRequest
	owner   chain.Address // of nonce
	nonce   chain.DurableNonce
}

// nodeCall is one call of a driver that reaches a node. It returns the call's result beside the
// error.
type nodeCall struct {
	name  string
	needs []Capability
	call  func(ctx context.Context, driver chain.Driver, args callArgs) (any, error)
}

// nodeCalls are all calls that reach a node.
var nodeCalls = []nodeCall{
	{
		"Head",
		nil,
		func(ctx context.Context, driver chain.Driver, _ callArgs) (any, error) {
			return driver.Head(ctx)
		},
	},
	{
		"Tip",
		[]Capability{TipReader},
		func(ctx context.Context, driver chain.Driver, _ callArgs) (any, error) {
			return driver.(chain.TipReader).Tip(ctx)
		},
	},
	{
		"RefAt",
		nil,
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.RefAt(ctx, args.block.Height)
		},
	},
	{
		"Check",
		[]Capability{Checker},
		func(ctx context.Context, driver chain.Driver, _ callArgs) (any, error) {
			return nil, driver.(chain.Checker).Check(ctx)
		},
	},
	{
		"Blocks",
		[]Capability{BlockScanner},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.(chain.BlockScanner).Blocks(ctx, args.block.Height, args.block.Height)
		},
	},
	{
		"TransfersTo",
		[]Capability{AddressScanner},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			addresses, height := []chain.Address{args.to}, args.block.Height
			return driver.(chain.AddressScanner).TransfersTo(ctx, addresses, height, height)
		},
	},
	{
		"Pool",
		[]Capability{Mempool},
		func(ctx context.Context, driver chain.Driver, _ callArgs) (any, error) {
			return driver.(chain.Mempool).Pool(ctx)
		},
	},
	{
		"Transaction",
		[]Capability{Finder},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.(chain.Finder).Transaction(ctx, args.txHash)
		},
	},
	{
		"Balances",
		[]Capability{Balancer},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			holdings := []chain.Holding{{Address: args.to, AssetID: args.asset.ID}}
			return driver.(chain.Balancer).Balances(ctx, args.block, holdings)
		},
	},
	{
		"Unspent",
		[]Capability{CoinSource},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			_, amounts, err := driver.(chain.CoinReader).Unspent(ctx, []chain.Outpoint{{TxHash: args.txHash}})
			return amounts, err
		},
	},
	{
		"Nonce",
		[]Capability{Nonces},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.(chain.Nonces).Nonce(ctx, args.to)
		},
	},
	{
		"ReadNonces",
		[]Capability{DurableNonces, NonceOpening, Sender},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			accounts := []chain.Address{args.nonce.Account}
			return driver.(chain.DurableNonces).ReadNonces(ctx, args.owner, accounts)
		},
	},
	{
		"NonceUsed",
		[]Capability{DurableNonces, NonceOpening, Sender},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			used, _, err := driver.(chain.DurableNonces).NonceUsed(ctx, args.nonce)
			return used, err
		},
	},
	{
		"EstimateFee",
		[]Capability{Sender, FeeEstimator},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.(chain.FeeEstimator).EstimateFee(ctx, args.order)
		},
	},
	{
		"Build",
		[]Capability{Sender},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.(chain.Sender).Build(ctx, args.order)
		},
	},
	{
		"Broadcast",
		[]Capability{Sender},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return nil, driver.(chain.Sender).Broadcast(ctx, args.tx)
		},
	},
	{
		"Fits",
		[]Capability{Sender, FitChecker},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.(chain.FitChecker).Fits(ctx, args.tx)
		},
	},
	{
		"Status",
		[]Capability{Sender},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.(chain.Sender).Status(ctx, args.tx)
		},
	},
	{
		"PlanSweep",
		[]Capability{Sweeper},
		func(ctx context.Context, driver chain.Driver, args callArgs) (any, error) {
			return driver.(chain.Sweeper).PlanSweep(ctx, args.release)
		},
	},
}

// calls returns the calls that the driver has, with arguments that make them succeed.
func (e *env) calls() ([]nodeCall, callArgs) {
	e.t.Helper()
	e.mine(1)

	args := callArgs{block: e.head().Tip, to: e.newAddress(), asset: e.native}
	args.txHash = e.pay(args.to, e.native, amount(e.native))
	e.mine(1)

	if e.has(Sender) {
		args.order = e.order(e.wallet(), e.native, e.newAddress(), amount(e.native))
		args.tx = e.sign(args.order)
	}

	if e.has(Sender) && e.has(DurableNonces) && e.has(NonceOpening) {
		from, nonces := e.nonceWallet(1)
		args.owner, args.nonce = from.Address, nonces[0]
	}

	if e.has(Sweeper) {
		args.release = e.newRelease(e.native, amount(e.native).Mul(100), chain.Amount{})
	}

	var calls []nodeCall

	for _, call := range nodeCalls {
		isAbsent := func(needed Capability) bool { return !e.has(needed) }
		if !slices.ContainsFunc(call.needs, isAbsent) {
			calls = append(calls, call)
		}
	}

	return calls, args
}

func testCallsCanceled(e *env) {
	calls, args := e.calls()
	for _, call := range calls {
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()

		if _, err := call.call(ctx, e.Driver, args); !errors.Is(err, context.Canceled) {
			e.t.Errorf(
				"%s with a canceled context: %v, want an error that is context.Canceled",
				call.name, err,
			)
		}

		if answer, err := call.call(e.ctx, e.Driver, args); err != nil {
			e.t.Errorf("%s after that: %v, %v", call.name, answer, err)
		}
	}
}

func testCallsUnavailable(e *env) {
	calls, args := e.calls()
	for _, call := range calls {
		answer, err := call.call(e.ctx, e.Unreachable, args)
		if !errors.Is(err, fault.Unavailable) {
			e.t.Errorf("%s without a node: %v, want fault.Unavailable", call.name, err)
		}

		if errors.Is(err, fault.Invalid) || errors.Is(err, fault.NotFound) {
			e.t.Errorf("%s without a node: %v decides something that nobody knows", call.name, err)
		}

		if answer != nil && !reflect.ValueOf(answer).IsZero() {
			e.t.Errorf("%s without a node guessed %+v", call.name, answer)
		}
	}
}

func testCallsMisconfigured(e *env) {
	checker, ok := e.Misconfigured.(chain.Checker)
	if !ok {
		e.t.Fatal("DriverHarness.Misconfigured is not a chain.Checker, though the driver is")
	}

	e.expectFault(
		"Check of a node of another network",
		checker.Check(e.ctx), fault.Stopped, "chain_id_mismatch",
	)
}

func testCallsConcurrent(e *env) {
	calls, args := e.calls()

	var wg sync.WaitGroup

	for range 4 {
		for _, call := range calls {
			wg.Go(func() {
				if _, err := call.call(e.ctx, e.Driver, args); err != nil {
					e.t.Errorf("%s beside other calls: %v", call.name, err)
				}
			})
		}
	}

	wg.Wait()
}
