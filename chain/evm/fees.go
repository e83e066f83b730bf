package evm

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// EstimateFee returns the most that the order's transaction should cost, in wei. That is gas limit × 1.5 × (2
// × base fee + priority fee), or the offer of Order.Replaces plus an eighth where that is more. An OP-stack
// rollup adds the L1 data fee. Errors are those of messageOf and quote; an error of quote must come from two
// nodes where two answer.
func (d *driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	msg, err := d.messageOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	least, err := d.leastOfReplacement(order, msg)
	if err != nil {
		return chain.Amount{}, err
	}

	var fee chain.Amount

	err = d.nodes.AskRefusable(ctx, d.attempts, 0, func(ctx context.Context, node *endpoint) error {
		quote, err := d.quote(ctx, node, msg)
		if err == nil {
			quote.gas = max(quote.gas, min(least.gas, d.mostGas(d.shown.highest())))
			fee = quote.maxCost(least.feeCap)
		}

		return err
	})

	return fee, err
}

// networkQuote holds current fees, gas and balances for a transfer.
type networkQuote struct {
	baseFee, tipCap chain.Amount // wei per gas: the newest block's base fee, the suggested priority fee
	highest         chain.Amount // wei per gas: the most that may be offered
	gas             uint64       // the limit to set
	code            []byte       // of the account that native coin is paid to
	l1Fee           chain.Amount // upper bound of the cost of publishing on an OP-stack rollup, else 0
	balance         chain.Amount // the sender's, native
	assetBalance    chain.Amount // the sender's, of the asset

	latest headerJSON // the block that the quote is based on
}

// isContract reports whether the payee runs code of its own. An account that delegates to code (EIP-7702)
// still belongs to the holder of its key.
func (q networkQuote) isContract() bool {
	_, delegated := types.ParseDelegation(q.code)

	return len(q.code) > 0 && !delegated
}

// quote returns fees, gas and balances of a transfer. Within the bounds of verified blocks, the prices of one
// node suffice. The gas is compared with other nodes where several are configured. Errors:
//
//   - fault.State (insufficient_funds): the sender holds less than the transfer
//   - fault.Invalid (destination_not_payable): the contract or the payee reverts
//   - fault.Unavailable (nodes_disagree): two nodes give different estimates of the gas
func (d *driver) quote(ctx context.Context, node *endpoint, msg transferMsg) (networkQuote, error) {
	quote, err := d.nodeQuote(ctx, node, msg)
	if err != nil {
		return quote, err
	}

	shown, err := d.readShown(ctx, node, quote)
	if err != nil {
		return quote, err
	}

	if err := d.checkGas(node, quote.gas, shown); err != nil {
		return quote, err
	}

	others, err := d.othersOf(ctx, node, msg, quote, shown)
	if err != nil {
		return quote, err
	}

	second := func(of func(networkQuote) chain.Amount) func() (chain.Amount, bool) {
		return func() (chain.Amount, bool) {
			if len(others) == 0 {
				return chain.Amount{}, false
			}

			return of(others[0]), true
		}
	}

	quote.baseFee = d.baseFeeBound(shown).Of(
		quote.baseFee, second(func(q networkQuote) chain.Amount { return q.baseFee }),
	)
	quote.tipCap = d.tipBound(shown, quote.baseFee).Of(
		quote.tipCap, second(func(q networkQuote) chain.Amount { return q.tipCap }),
	)

	for _, other := range others {
		quote.l1Fee = chaindata.Min(quote.l1Fee, other.l1Fee)
	}

	quote.l1Fee = chaindata.Min(quote.l1Fee, d.maxGasPrice.Mul(quote.gas))
	quote.highest = d.maxGasPrice
	quote.gas, err = d.agreedGas(quote, others)

	return quote, err
}

// secondOpinionWithin is the time that other nodes have for their quotes.
const secondOpinionWithin = 2 * time.Second

// othersOf returns the quotes of other nodes. It asks one after another until one estimates about the same
// gas. It returns none where one node is configured.
func (d *driver) othersOf(
	ctx context.Context,
	node *endpoint,
	msg transferMsg,
	quote networkQuote,
	shown shownBlock,
) (others []networkQuote, err error) {
	if len(d.nodes.Nodes) == 1 {
		return nil, nil
	}

	brief, stop := context.WithTimeout(ctx, secondOpinionWithin)
	defer stop()

	_ = d.nodes.AskBeside(brief, node, 0, func(ctx context.Context, other *endpoint) (bool, error) {
		second, err := d.nodeQuote(ctx, other, msg)
		if err == nil {
			err = d.checkGas(other, second.gas, shown)
		}

		if err != nil {
			return false, err
		}

		others = append(others, second)

		return sameGas(quote.gas, second.gas), nil
	})

	if ctx.Err() != nil {
		return nil, failover.Fault(d.network.Slug, ctx.Err())
	}

	return others, nil
}

// nodeQuote reads one node's fees, gas and balances in one request, and the L1 data fee in another. Errors
// are those of quote.
func (d *driver) nodeQuote(ctx context.Context, node *endpoint, msg transferMsg) (networkQuote, error) {
	var quote networkQuote

	calls, err := d.quoteCallsOf(msg)
	if err != nil {
		return quote, err
	}

	if err := node.do(ctx, calls.all()...); err != nil {
		return quote, err
	}

	if quote.baseFee, quote.tipCap, err = node.feesPerGas(ctx, calls.header, calls.tipCap); err != nil {
		return quote, err
	}

	if err := calls.header.decode(node, &quote.latest); err != nil {
		return quote, err
	}

	if quote.balance, err = calls.balance.amount(node); err != nil {
		return quote, err
	}

	if quote.assetBalance, err = calls.assetBalance.amount(node); err != nil {
		return quote, err
	}

	if quote.assetBalance.Less(msg.amount) {
		if !msg.fundedLater {
			return quote, d.insufficientFunds(msg, quote.assetBalance)
		}

		if calls.gas, err = node.estimateFunded(ctx, msg, quote.balance); err != nil {
			return quote, err
		}
	}

	if msg.asset.Kind == chain.Native {
		if err := calls.code.decode(node, (*hexutil.Bytes)(&quote.code)); err != nil {
			return quote, err
		}
	}

	if quote.gas, err = d.gasLimit(node, calls, msg, quote); err != nil {
		return quote, err
	}

	quote.l1Fee, err = d.l1Fee(ctx, node, msg, quote)

	return quote, err
}

// quoteCalls are the calls of one quote. For native coin balance and assetBalance are the same call. fresh
// estimates the transfer to a receiver that holds nothing. used simulates the transfer and gives the gas that
// it used. Both are nil where they are not needed.
type quoteCalls struct{ header, tipCap, gas, fresh, used, code, balance, assetBalance *call }

// quoteCallsOf returns the calls of a quote, not sent yet.
func (d *driver) quoteCallsOf(msg transferMsg) (quoteCalls, error) {
	calls := quoteCalls{
		header:  newCall("eth_getBlockByNumber", "latest", false),
		tipCap:  newCall("eth_maxPriorityFeePerGas"),
		gas:     newCall("eth_estimateGas", msg.callArgs()),
		code:    newCall("eth_getCode", msg.payee, "latest"),
		balance: newCall("eth_getBalance", msg.from, "latest"),
	}

	if msg.exact {
		calls.used = newCall("eth_simulateV1", msg.simulation(), "latest")
	}

	calls.assetBalance = calls.balance
	if msg.asset.Kind != chain.Token {
		return calls, nil
	}

	if msg.fromMaster {
		fresh := msg
		fresh.data = transferInput(freshReceiver(msg), msg.amount)
		calls.fresh = newCall("eth_estimateGas", fresh.callArgs())
	}

	var err error

	holding := chain.Holding{Address: canonical(msg.from), AssetID: msg.asset.ID}
	calls.assetBalance, err = d.balanceCall(holding, "latest")

	return calls, err
}

// all returns the calls in the order in which they are sent.
func (q quoteCalls) all() []*call {
	calls := []*call{q.header, q.tipCap, q.gas, q.code, q.balance}
	if q.assetBalance != q.balance {
		calls = append(calls, q.assetBalance)
	}

	for _, optional := range []*call{q.fresh, q.used} {
		if optional != nil {
			calls = append(calls, optional)
		}
	}

	return calls
}

// feesPerGas returns base fee and priority fee in wei per gas. Without eth_maxPriorityFeePerGas it
// subtracts the base fee from eth_gasPrice, the sum of both.
func (e *endpoint) feesPerGas(
	ctx context.Context,
	header, tip *call,
) (baseFee, tipCap chain.Amount, err error) {
	var latest headerJSON
	if err = header.decode(e, &latest); err != nil {
		return
	}

	if baseFee, err = e.price(latest.BaseFeePerGas); err != nil {
		return
	}

	var wei hexutil.Big

	if tip.refusal() != nil { // another call shows the same
		gasPrice := newCall("eth_gasPrice")
		if err = e.do(ctx, gasPrice); err != nil {
			return
		}

		if err = gasPrice.decode(e, &wei); err != nil {
			return
		}

		if tipCap, err = e.price(&wei); err != nil {
			return
		}

		return baseFee, tipCap.SubFloor(baseFee), nil
	}

	if err = tip.decode(e, &wei); err != nil {
		return
	}

	tipCap, err = e.price(&wei)

	return
}

// l1Fee returns the L1 data fee of an OP-stack rollup in wei, elsewhere 0. It adds a quarter, rounded up, as
// L1 prices may rise before inclusion. Source: OP-stack specification, GasPriceOracle.getL1Fee.
func (d *driver) l1Fee(
	ctx context.Context,
	node *endpoint,
	msg transferMsg,
	quote networkQuote,
) (chain.Amount, error) {
	if d.l1GasPriceOracle == nil {
		return chain.Amount{}, nil
	}

	// The fee depends on the size: every number is as long as in the final transaction.
	price := quote.baseFee.Add(quote.baseFee).Add(quote.tipCap)
	raw := (&unsignedTx{
		chainID: d.network.ChainID,
		nonce:   1 << 32,
		tipCap:  price,
		feeCap:  price,
		gas:     quote.gas,
		to:      msg.to,
		value:   msg.value,
		data:    msg.data,
	}).encode()

	rpcCall := viewCall(*d.l1GasPriceOracle, getL1FeeInput(raw), "latest")
	if err := node.do(ctx, rpcCall); err != nil {
		return chain.Amount{}, err
	}

	fee, err := rpcCall.uint256(node)
	if err != nil {
		return fee, err
	}

	if chain.MaxTransfer.Less(fee) {
		return fee, node.Garbled("an L1 data fee of %s wei", fee)
	}

	return fee.Add(fraction(fee, 4)), nil
}

// getL1FeeInput returns the ABI encoding of getL1Fee(bytes).
func getL1FeeInput(raw []byte) []byte {
	length := chain.Units(uint64(len(raw))).Bytes32()
	offset := chain.Units(32).Bytes32()
	input := append([]byte{0x49, 0x94, 0x8e, 0x0e}, offset[:]...)
	input = append(input, length[:]...)

	return append(input, common.RightPadBytes(raw, (len(raw)+31)/32*32)...)
}

// feeCap returns the maximum fee to offer, in wei per gas: 2 × base fee + priority fee.
func (q networkQuote) feeCap() chain.Amount { return q.baseFee.Add(q.baseFee).Add(q.tipCap) }

// sweepFeeCap returns the price of a sweep in wei per gas: 1.25 × base fee, rounded up, + priority fee. A
// sweep spends all of it. After two full blocks the base fee is above 1.25 times by no more than the priority
// fee covers.
func (q networkQuote) sweepFeeCap() chain.Amount {
	return q.baseFee.Add(fraction(q.baseFee, 4)).Add(q.tipCap)
}

// fraction returns the given part (1/parts) of an amount, rounded up.
func fraction(amount chain.Amount, parts uint64) chain.Amount {
	return amount.RoundUpTo(chain.Units(parts)).Share(chain.Units(1), chain.Units(parts))
}

// maxCost returns the most that the transaction should cost, in wei. The price is 1.5 × the higher of the fee
// cap and the price of the displaced transaction. It is rounded up, and at most the highest price. That
// allows three replacements, each an eighth higher.
func (q networkQuote) maxCost(displacing chain.Amount) chain.Amount {
	price := chaindata.Max(q.feeCap(), displacing)
	return chaindata.Min(price.Add(fraction(price, 2)), q.highest).Mul(q.gas).Add(q.l1Fee)
}

// expectedCost returns the cost of the transaction at current fees, in wei.
func (q networkQuote) expectedCost() chain.Amount {
	return q.baseFee.Add(q.tipCap).Mul(q.gas).Add(q.l1Fee)
}
