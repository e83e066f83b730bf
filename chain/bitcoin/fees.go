package bitcoin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Fee rates are satoshi per 1000 virtual bytes.
const (
	// maxSaneFeeRate bounds every rate, so that rate × weight cannot overflow: a whole bitcoin.
	maxSaneFeeRate = 100_000_000
	// longTermRate is the rate at which a coin is assumed to be spent later. Below it selection consolidates
	// coins; above it selection spends few. Source: Bitcoin Core, DEFAULT_CONSOLIDATE_FEERATE.
	longTermRate = 10_000
	// defaultIncrement is the incremental relay rate of nodes that do not report one. Source: btcd,
	// mempool.DefaultMinRelayTxFee.
	defaultIncrement = 1_000
	// bumpHeadroom is the multiple of the current fee that an estimate covers, so that a transaction can be
	// replaced at higher rates.
	bumpHeadroom = 3
)

// feeRates are a node's current rates in satoshi per 1000 virtual bytes.
type feeRates struct {
	// estimate is the rate of inclusion within Config.FeeTarget blocks.
	estimate int64
	// minRelay is the lowest rate that the node relays.
	minRelay int64
	// incrementalRelay is the rate at which a replacement pays for its own relay.
	incrementalRelay int64
}

// readFeeRates returns a node's rates. Rates above the bounds of verified blocks need a second node, and the
// lower rate of the two counts. The estimate is within the configured bounds and at least the lowest rate
// that the node relays. If a single node claims to relay nothing within the bounds, the error is
// fault.Limited (fee_above_maximum).
func (d *driver) readFeeRates(ctx context.Context, node *endpoint) (feeRates, error) {
	said, err := d.saidRates(ctx, node)
	if err != nil {
		return feeRates{}, err
	}

	shown := d.readShown(ctx, node, max(said.estimate, said.minRelay, said.incrementalRelay))
	rates, shared := d.boundRates(ctx, node, said, shown)
	most := int64(d.config.MaxFeeRate)

	rates.estimate = cmp.Or(rates.estimate, int64(d.config.FallbackFeeRate))
	rates.estimate = max(min(rates.estimate, most), int64(d.config.MinFeeRate), rates.minRelay)

	if rates.minRelay >= most && said.minRelay > most || rates.minRelay < said.minRelay && !shared {
		return feeRates{}, fault.Wrap(
			fmt.Errorf("node %s says so", node.Host),
			fault.Limited,
			"fee_above_maximum",
			"the network takes no transaction below %d satoshi per 1000 vB: Config.MaxFeeRate is %d, the newest "+
				"blocks paid up to %d",
			said.minRelay,
			d.config.MaxFeeRate,
			shown.paid,
		)
	}

	return rates, nil
}

// boundRates returns a node's rates, each within its bound. shared is set if another node was asked and
// answered.
func (d *driver) boundRates(
	ctx context.Context,
	node *endpoint,
	said feeRates,
	shown shownRate,
) (rates feeRates, shared bool) {
	var other feeRates

	second := sync.OnceFunc(func() {
		brief, stop := context.WithTimeout(ctx, secondOpinionWithin)
		defer stop()

		_ = d.nodes.AskBeside(
			brief,
			node,
			0,
			d.verifiedBeside(func(ctx context.Context, node *endpoint) (err error) {
				other, err = d.saidRates(ctx, node)
				shared = err == nil

				return err
			}),
		)
	})

	bound := d.rateBound(shown)
	bounded := func(of func(feeRates) int64) int64 {
		rate, _ := satoshi(bound.Of(satoshiAmount(of(said)), func() (chain.Amount, bool) {
			second()
			return satoshiAmount(of(other)), of(other) > 0
		}))

		return rate // 0 if the node has no estimate
	}

	rates.estimate = bounded(func(r feeRates) int64 { return r.estimate })
	rates.minRelay = bounded(func(r feeRates) int64 { return r.minRelay })
	rates.incrementalRelay = bounded(func(r feeRates) int64 { return r.incrementalRelay })

	return rates, shared
}

// secondOpinionWithin is the time that other nodes have for their rates.
const secondOpinionWithin = 2 * time.Second

// saidRates returns one node's rates, unchecked; the estimate is 0 if it has none.
func (d *driver) saidRates(ctx context.Context, node *endpoint) (feeRates, error) {
	estimate, pool := newCall("estimatesmartfee", d.config.FeeTarget), newCall("getmempoolinfo")
	if err := node.batchCall(ctx, estimate, pool); err != nil {
		return feeRates{}, err
	}

	rates, err := pool.relayRates(node)
	if err != nil {
		return feeRates{}, err
	}

	rates.estimate, err = estimate.estimatedRate(node)

	return rates, err
}

// relayRates returns the relay rates in an answer of getmempoolinfo.
func (c *rpcCall) relayRates(node *endpoint) (feeRates, error) {
	var floor struct {
		Least     json.Number `json:"mempoolminfee"`
		Relay     json.Number `json:"minrelaytxfee"`
		Increment json.Number `json:"incrementalrelayfee"`
	}
	if err := c.decode(node, &floor); err != nil {
		return feeRates{}, err
	}

	var rates feeRates

	for _, field := range []struct {
		number json.Number
		into   *int64
	}{
		{floor.Least, &rates.minRelay},
		{floor.Relay, &rates.minRelay},
		{floor.Increment, &rates.incrementalRelay},
	} {
		rate, ok := rateOf(field.number)
		if !ok {
			return feeRates{}, node.Garbled(
				"it asks for a fee rate of %q bitcoin per 1000 vB",
				truncate(field.number.String()),
			)
		}

		*field.into = max(*field.into, rate)
	}

	if floor.Increment == "" {
		rates.incrementalRelay = defaultIncrement
	}

	rates.incrementalRelay = max(rates.incrementalRelay, 1)

	return rates, nil
}

// estimatedRate returns the rate in an answer of estimatesmartfee; 0 if the node has no estimate. btcd has no
// such method, and Bitcoin Core refuses it while it relays no transactions (-blocksonly).
func (c *rpcCall) estimatedRate(node *endpoint) (int64, error) {
	if failover.RefusedWith(c.err, codeNoMethod, codeInternal) {
		return 0, nil
	}

	var answer struct {
		Rate json.Number `json:"feerate"`
	}
	if err := c.decode(node, &answer); err != nil {
		return 0, err
	}

	if answer.Rate == "" { // the node has not enough data
		return 0, nil
	}

	rate, ok := rateOf(answer.Rate)
	if !ok || rate == 0 {
		return 0, node.Garbled(
			"it estimates a fee rate of %q bitcoin per 1000 vB",
			truncate(answer.Rate.String()),
		)
	}

	return rate, nil
}

// PaysEnough reports whether a transaction of the mempool, alone and with its unconfirmed ancestors, pays the
// current rate. With a node that does not report the fees of the mempool (btcd), only the transaction itself
// counts.
func (d *driver) PaysEnough(ctx context.Context, signed chain.Signed) (enough bool, err error) {
	tx, err := signedTx(signed)
	if err != nil {
		return false, err
	}

	paid, ok := satoshi(signed.MaxFee)
	if !ok {
		return false, nil
	}

	err = d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		rates, err := d.readFeeRates(ctx, node)
		if err != nil {
			return err
		}

		if enough = paid >= feeAt(rates.estimate, roundToVBytes(weightOf(tx))); !enough {
			return nil
		}

		var answer entryJSON

		err = node.call(ctx, &answer, "getmempoolentry", signed.TxHash)
		if failover.RefusedWith(err, codeNoMethod, codeMisc) {
			return nil
		}

		if failover.RefusedWith(err, codeNotFound) {
			enough = false
			return nil
		}

		if err != nil {
			return err
		}

		entry, err := answer.entry(node, signed.TxHash)
		enough = entry.ancestorFees >= feeAt(rates.estimate, entry.ancestorWeight)

		return err
	})

	return enough && err == nil, err
}

// rateOf returns a rate of whole bitcoins per 1000 virtual bytes in satoshi; 0 for an empty number.
func rateOf(number json.Number) (int64, bool) {
	if number == "" {
		return 0, true
	}

	rate, err := satoshiOf(number.String())

	return rate, err == nil && rate <= maxSaneFeeRate
}

// EstimateFee returns three times the order's fee at current rates, in satoshi. It assumes the coins that
// Build would choose of Order.Coins. For a payment that replaces nothing, it assumes at least assumedInputs
// coins, as others may use the best ones before it is signed. Without coins it assumes assumedInputs inputs
// of the configured kind of address, and change. It refuses a payment that the coins cannot make, with the
// largest one that they can make; see unaffordable.
func (d *driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	target, err := d.targetOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	coins, required, err := d.candidates(order)
	if err != nil {
		coins, required = nil, nil // the replaced transaction's coins may be missing from Order.Coins
	}

	var fee int64

	err = d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		rates, err := d.readFeeRates(ctx, node)
		if err != nil {
			return err
		}

		fee, err = d.estimateFee(order, target, feePolicy{rate: rates.estimate}, coins, required)

		return err
	})
	if err != nil {
		return chain.Amount{}, err
	}

	maxFee := satoshiAmount(fee).Mul(bumpHeadroom)
	if order.Replaces != nil {
		maxFee = chaindata.Max(maxFee, order.Replaces.MaxFee.Add(order.Replaces.MaxFee))
	}

	return maxFee, nil
}

// ownInputWeight returns the weight of an input of the configured kind of address, in weight units.
func (d *driver) ownInputWeight() int64 {
	if d.config.Taproot {
		return p2trWeight
	}

	return p2wpkhWeight
}

// replacementPolicy returns the lowest fee policy at which the mempool accepts a replacement: the fees of all
// transactions that it displaces, its own relay, and a higher rate. If the replaced transaction paid no fee,
// the error is fault.Invalid (replacement_invalid).
//
// Source: Bitcoin Core, doc/policy/mempool-replacements.md.
func (e *endpoint) replacementPolicy(
	ctx context.Context,
	old chain.Signed,
	rates feeRates,
) (feePolicy, error) {
	paid, ok := satoshi(old.MaxFee)
	if !ok {
		return feePolicy{}, fault.New(
			fault.Invalid, "replacement_invalid", "transaction %s paid no fee", old.TxHash,
		)
	}

	policy := feePolicy{rate: rates.minRelay, replacedFee: paid, incrementalRate: rates.incrementalRelay}

	if len(old.Raw) > 0 { // a transaction that a person acknowledged has no bytes
		tx, err := signedTx(old)
		if err != nil {
			return feePolicy{}, err
		}

		policy.rate = max(policy.rate, paid*4000/weightOf(tx)+1)
	}

	var entry struct {
		Fees struct {
			Descendant json.Number `json:"descendant"`
		} `json:"fees"`
	}

	err := e.call(ctx, &entry, "getmempoolentry", old.TxHash)
	if failover.RefusedWith(err, codeNotFound, codeNoMethod, codeMisc) {
		return policy, nil // it left the mempool, or the node does not report fees, as btcd
	}

	if err != nil {
		return feePolicy{}, err
	}

	descendants, err := satoshiOf(entry.Fees.Descendant.String())
	if err != nil {
		return feePolicy{}, e.Garbled("its fees of transaction %s are no amount", old.TxHash)
	}

	policy.replacedFee = max(policy.replacedFee, descendants)

	return policy, nil
}
