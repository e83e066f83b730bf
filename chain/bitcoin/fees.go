package bitcoin

import (
	"context"
	"encoding/json"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Fee rates are satoshi per 1000 virtual bytes.
const (
	// maxSaneFeeRate bounds every rate, so that rate × weight cannot overflow: a whole bitcoin.
	maxSaneFeeRate = 100_000_000
	// longTermRate is what spending a coin is taken to cost at some later, quieter time: below it, coins are
	// gathered, above it, few are spent. Source: Bitcoin Core, DEFAULT_CONSOLIDATE_FEERATE.
	longTermRate = 10_000
	// defaultIncrement is what nodes that do not say ask of a replacement. Source: btcd,
	// mempool.DefaultMinRelayTxFee.
	defaultIncrement = 1_000
	// bumpHeadroom is how many times the current fee an estimate allows for, so that there is room for
	// replacements.
	bumpHeadroom = 3
)

// feeRates is what a node asks for now.
type feeRates struct {
	// estimate is what gets a transaction into a block within Config.FeeTarget blocks.
	estimate int64
	// minRelay is the least that the node relays.
	minRelay int64
	// incrementalRelay is what a replacement must pay on top for itself.
	incrementalRelay int64
}

// readFeeRates reads the node's estimate, within the configured bounds and never below what it relays. A node
// that relays nothing within the bounds is fault.Limited.
func (d *Driver) readFeeRates(ctx context.Context, e *endpoint) (feeRates, error) {
	estimate := newCall("estimatesmartfee", d.config.FeeTarget)

	pool := newCall("getmempoolinfo")
	if err := e.batchCall(ctx, estimate, pool); err != nil {
		return feeRates{}, err
	}

	var floor struct {
		Least     json.Number `json:"mempoolminfee"`
		Relay     json.Number `json:"minrelaytxfee"`
		Increment json.Number `json:"incrementalrelayfee"`
	}
	if err := pool.decode(e, &floor); err != nil {
		return feeRates{}, err
	}

	var rates feeRates
	for _, f := range []struct {
		number json.Number
		into   *int64
	}{{floor.Least, &rates.minRelay}, {floor.Relay, &rates.minRelay}, {floor.Increment, &rates.incrementalRelay}} {
		rate, ok := rateOf(f.number)
		if !ok {
			return feeRates{}, e.Garbled(
				"it asks for a fee rate of %q bitcoin per 1000 vB",
				truncate(f.number.String()),
			)
		}

		*f.into = max(*f.into, rate)
	}

	if floor.Increment == "" {
		rates.incrementalRelay = defaultIncrement
	}

	rates.incrementalRelay = max(rates.incrementalRelay, 1)
	rates.estimate = int64(d.config.FallbackFeeRate)

	var answer struct {
		Rate json.Number `json:"feerate"`
	}
	if !failover.RefusedWith(estimate.err, codeNoMethod) { // btcd cannot estimate
		if err := estimate.decode(e, &answer); err != nil {
			return feeRates{}, err
		}
	}

	if answer.Rate != "" { // without enough data the answer has none
		rate, ok := rateOf(answer.Rate)
		if !ok || rate == 0 {
			return feeRates{}, e.Garbled(
				"it estimates a fee rate of %q bitcoin per 1000 vB",
				truncate(answer.Rate.String()),
			)
		}

		rates.estimate = rate
	}

	rates.estimate = max(min(rates.estimate, int64(d.config.MaxFeeRate)), int64(d.config.MinFeeRate), rates.minRelay)
	if rates.estimate > int64(d.config.MaxFeeRate) {
		return feeRates{}, fault.New(
			fault.Limited, "fee_above_maximum",
			"node %s takes no transaction below %d satoshi per 1000 vB, Config.MaxFeeRate is %d",
			e.Host, rates.estimate, d.config.MaxFeeRate,
		)
	}

	return rates, nil
}

// rateOf reads a rate in whole bitcoins; empty is 0.
func rateOf(number json.Number) (int64, bool) {
	if number == "" {
		return 0, true
	}

	rate, err := satoshiOf(number.String())

	return rate, err == nil && rate <= maxSaneFeeRate
}

// assumedInputs is how many coins an order is taken to spend that names none yet.
const assumedInputs = 3

// EstimateFee returns three times the order's fee at current rates. It counts on the coins that Build would
// choose of Order.Coins, or, where there are none yet or too few, on three inputs of our own kind of
// address, and on change.
func (d *Driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	target, err := d.targetOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	coins, required, err := d.candidates(order)
	if err != nil {
		coins, required = nil, nil // the coins of what is replaced may not be at hand yet
	}

	var fee int64

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		rates, err := d.readFeeRates(ctx, e)
		if err != nil {
			return err
		}

		policy := feePolicy{rate: rates.estimate}
		if selected, err := selectCoins(target, policy, coins, required); err == nil {
			fee = selected.fee
		} else {
			count := assumedInputs
			if order.Replaces != nil {
				count = max(1, len(order.Replaces.Inputs))
			}

			fee = policy.fee(target.txWeight(count, int64(count)*d.ownInputWeight(), true))
		}

		return nil
	})
	if err != nil {
		return chain.Amount{}, err
	}

	maxFee := satoshiAmount(fee).Mul(bumpHeadroom)
	if order.Replaces != nil {
		maxFee = chain.Max(maxFee, order.Replaces.MaxFee.Add(order.Replaces.MaxFee))
	}

	return maxFee, nil
}

func (d *Driver) ownInputWeight() int64 {
	if d.config.Taproot {
		return p2trWeight
	}

	return p2wpkhWeight
}
