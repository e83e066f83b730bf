package conformance_test

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// faultyUTXO is the simulated driver of outputs with calls of it replaced.
type faultyUTXO struct {
	*sim.UTXO
	build      func(context.Context, chain.Order) (chain.Unsigned, error)
	paysEnough func(context.Context, chain.Signed) (bool, error)
	inputFees  func(context.Context, []chain.Coin) ([]chain.Amount, error)
}

func (f *faultyUTXO) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	return f.build(ctx, o)
}

func (f *faultyUTXO) PaysEnough(ctx context.Context, tx chain.Signed) (bool, error) {
	return f.paysEnough(ctx, tx)
}

func (f *faultyUTXO) InputFees(ctx context.Context, coins []chain.Coin) ([]chain.Amount, error) {
	return f.inputFees(ctx, coins)
}

type utxoMutant struct {
	fails  string
	change func(f *faultyUTXO)
}

var utxoMutants = map[string]utxoMutant{
	"nothing pays enough": {
		"FeeChecker/CurrentFeePaysEnough",
		func(f *faultyUTXO) {
			f.paysEnough = func(context.Context, chain.Signed) (bool, error) { return false, nil }
		},
	},
	"everything pays enough": {
		"FeeChecker/WhatItRestsOnCounts",
		func(f *faultyUTXO) {
			f.paysEnough = func(context.Context, chain.Signed) (bool, error) { return true, nil }
		},
	},
	"inputs cost nothing": {
		"InputPricer/InputsAreWhatTheyAdd",
		func(f *faultyUTXO) {
			f.inputFees = func(_ context.Context, coins []chain.Coin) ([]chain.Amount, error) {
				return make([]chain.Amount, len(coins)), nil
			}
		},
	},
	"inputs cost a tenth more": {
		"InputPricer/InputsAreWhatTheyAdd",
		func(f *faultyUTXO) {
			f.inputFees = func(ctx context.Context, coins []chain.Coin) ([]chain.Amount, error) {
				fees, err := f.UTXO.InputFees(ctx, coins)
				for i := range fees {
					fees[i] = fees[i].Share(chain.Units(11), chain.Units(10))
				}

				return fees, err
			}
		},
	},
	"one price for all inputs": {
		"InputPricer/InputsAreWhatTheyAdd",
		func(f *faultyUTXO) {
			f.inputFees = func(ctx context.Context, coins []chain.Coin) ([]chain.Amount, error) {
				return f.UTXO.InputFees(ctx, coins[:1])
			}
		},
	},
	"any input has a price": {
		"InputPricer/UnspendableInputIsInvalid",
		func(f *faultyUTXO) {
			f.inputFees = func(_ context.Context, coins []chain.Coin) ([]chain.Amount, error) {
				return make([]chain.Amount, len(coins)), nil
			}
		},
	},
	"named coins are ignored": {
		"NamedCoins/NamedCoinsAreSpent",
		func(f *faultyUTXO) {
			f.build = func(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
				o.Spends = nil
				return f.UTXO.Build(ctx, o)
			}
		},
	},
	"missing named coins are left out": {
		"NamedCoins/MissingNamedCoinIsInvalid",
		func(f *faultyUTXO) {
			f.build = func(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
				o.Spends = nil
				return f.UTXO.Build(ctx, o)
			}
		},
	},
}
