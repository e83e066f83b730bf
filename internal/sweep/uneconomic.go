package sweep

import (
	"context"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file decides what is worth its network fees.

// belowMin reports whether every deposit of the group is worth less than the account's sweep
// minimum. One that is worth enough takes the others along.
func (g group) belowMin(minimum decimal.Decimal) bool { // spec 2.8.7
	for _, s := range g {
		if !s.USDValue.LessThan(minimum) {
			return false
		}
	}

	return true
}

// nativePrice returns what one native coin costs now, in USD, and where there is no fresh price what it cost as the
// newest deposit of the group was confirmed.
func (p *planningRun) nativePrice(ctx context.Context, g group) decimal.Decimal {
	if g[0].FeeSource == settlement.FromMaster && p.config.Price != nil {
		if price, err := p.config.Price(ctx, p.native); err == nil {
			return price
		}
	}

	return g[len(g)-1].NativePrice
}

// uneconomic reports whether the network fees exceed half of what is left (base units) of what the group is worth.
// Native deposits are compared in base units, tokens in USD: what they were worth at their confirmation with what the
// fees cost at the present price of one native coin.
func (g group) uneconomic( // spec 2.8.6
	steps []chain.SweepStep,
	left chain.Amount,
	nativeDecimals uint8,
	nativePrice decimal.Decimal,
) bool {
	fees := networkFees(steps)
	if g[0].FeeSource == settlement.FromDeposit {
		return left.Less(fees.Add(fees))
	}

	var worth decimal.Decimal
	for _, s := range g {
		worth = worth.Add(s.USDValue)
	}

	// A token is divided by what the group brought of it, so that its decimals cancel out.
	cost := fees.Decimal(nativeDecimals).Mul(nativePrice)

	return cost.Add(cost).Mul(g.gross().Decimal(0)).GreaterThan(worth.Mul(left.Decimal(0)))
}

// leftOf returns what a release brings its settlements of their deposits, in base units: earlier transactions took what
// the address owes, and what it claims of earlier sweeps is at the master wallet.
func leftOf(r settlement.Sweep) chain.Amount {
	return chaindata.Min(r.Amount, r.Amount.SubFloor(r.Owed).Add(r.Claimed()))
}

// payingInputs returns the settlements of a group whose coin is worth spending, with the coins, in its order.
// The others are held as uneconomic: an input that costs more than half of what it holds stays where it is, so
// that no other deposit pays for it. Where the driver prices no inputs all are returned.
func (p *planningRun) payingInputs(
	ctx context.Context,
	g group,
	coins []chain.Coin,
) (group, []chain.Coin, error) {
	pricer, ok := p.planner.(chain.InputPricer)
	if !ok || len(coins) == 0 {
		return g, coins, nil
	}

	fees, err := pricer.InputFees(ctx, coins)
	if err != nil {
		return nil, nil, err
	}

	var (
		paying, costly group
		spent          []chain.Coin
	)

	for i, s := range g {
		if coins[i].Amount.Less(fees[i].Add(fees[i])) {
			costly = append(costly, s)
			continue
		}

		paying, spent = append(paying, s), append(spent, coins[i])
	}

	if len(costly) > 0 {
		if err := p.hold(ctx, costly, settlement.Uneconomic, nil); err != nil {
			return nil, nil, err
		}
	}

	return paying, spent, nil
}
