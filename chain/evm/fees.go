package evm

import (
	"context"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// EstimateFee returns the most that the order's transaction should cost, in wei: gas limit × 1.5 ×
// (2 × base fee + priority fee), plus the L1 data fee of an OP-stack rollup. Errors are those of
// messageOf and quote; those of quote are of two nodes where two answer.
func (d *driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	msg, err := d.messageOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	var fee chain.Amount

	err = d.nodes.AskRefusable(ctx, d.attempts, 0, func(ctx context.Context, node *endpoint) error {
		quote, err := d.quote(ctx, node, msg)
		if err == nil {
			fee = quote.maxCost()
		}

		return err
	})

	return fee, err
}

// transferGas is the gas of a native transfer to an account without code, except on networks that
// count publishing as gas. Source: Ethereum Yellow Paper, G_transaction.
const transferGas = 21_000

// maxGas bounds the gas estimates that are accepted.
const maxGas = 1 << 32

// networkQuote holds current fees, gas and balances for a transfer.
type networkQuote struct {
	baseFee, tipCap chain.Amount // wei per gas: the newest block's base fee, the suggested priority fee
	gas             uint64       // the limit to set
	hasCode         bool         // the payee of native coin runs code
	l1Fee           chain.Amount // the most that publishing may cost on an OP-stack rollup, else 0
	balance         chain.Amount // the sender's, native
	assetBalance    chain.Amount // the sender's, of the asset
}

// quote reads fees, gas and balances in one request, and the L1 data fee in another. Errors:
//
//   - fault.State (insufficient_funds): the sender holds less than the transfer
//   - fault.Invalid (destination_not_payable): the contract or the payee reverts
func (d *driver) quote(ctx context.Context, node *endpoint, msg transferMsg) (networkQuote, error) {
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

	if quote.balance, err = calls.balance.amount(node); err != nil {
		return quote, err
	}

	if quote.assetBalance, err = calls.assetBalance.amount(node); err != nil {
		return quote, err
	}

	if quote.assetBalance.Less(msg.amount) {
		return quote, d.insufficientFunds(msg, quote.assetBalance)
	}

	var code hexutil.Bytes
	if err := calls.code.decode(node, &code); err != nil {
		return quote, err
	}

	quote.hasCode = msg.asset.Kind == chain.Native && len(code) > 0
	if quote.gas, err = calls.gas.gasLimit(node, msg); err != nil {
		return quote, err
	}

	quote.l1Fee, err = d.l1Fee(ctx, node, msg, quote)

	return quote, err
}

// quoteCalls are the calls of one quote. For native coin balance and assetBalance are one call.
type quoteCalls struct{ header, tipCap, gas, code, balance, assetBalance *call }

// quoteCallsOf returns the calls of a quote, not sent yet.
func (d *driver) quoteCallsOf(msg transferMsg) (quoteCalls, error) {
	calls := quoteCalls{
		header: newCall("eth_getBlockByNumber", "latest", false),
		tipCap: newCall("eth_maxPriorityFeePerGas"),
		gas: newCall("eth_estimateGas", map[string]any{
			"from":  msg.from,
			"to":    msg.to,
			"value": (*hexutil.Big)(msg.value.Big()),
			"data":  hexutil.Bytes(msg.data),
		}),
		code:    newCall("eth_getCode", msg.payee, "latest"),
		balance: newCall("eth_getBalance", msg.from, "latest"),
	}

	calls.assetBalance = calls.balance
	if msg.asset.Kind != chain.Token {
		return calls, nil
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

	if tip.err != nil { // whatever it says: another call shows the same
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

// storageGas is the gas for writing a word of storage that was zero (EIP-2200).
const storageGas = 20_000

// gasLimit returns the gas limit for an estimate: the estimate itself for a plain native transfer, else a fifth more,
// rounded up, since state may change before inclusion. A token that a master wallet pays has headroom for a receiver
// whose balance becomes zero meanwhile: exchanges empty their deposit addresses. A release has not: its top-up pays
// for the limit, and what is not used would stay behind.
func (c *call) gasLimit(node *endpoint, msg transferMsg) (uint64, error) {
	if isRevert(c.err) {
		return 0, notPayable(c.err, canonical(msg.payee))
	}

	var gas hexutil.Uint64
	if err := c.decode(node, &gas); err != nil {
		return 0, err
	}

	if gas < transferGas || gas > maxGas {
		return 0, node.Garbled("a gas estimate of %d", uint64(gas))
	}

	if gas == transferGas {
		return transferGas, nil
	}

	headroom := (uint64(gas) + 4) / 5
	if msg.fromMaster && msg.asset.Kind == chain.Token {
		headroom = max(headroom, storageGas)
	}

	return uint64(gas) + headroom, nil
}

// isRevert reports whether the contract reverted. go-ethereum, Erigon, Reth and Anvil answer code
// 3, Nethermind -32015. Others, and a call that uses up its gas, say so only in the message.
func isRevert(err error) bool {
	refusal, ok := errors.AsType[*failover.Refusal](err)
	if !ok {
		return false
	}

	message := strings.ToLower(refusal.Message)

	return refusal.Code == codeReverted || refusal.Code == -32015 || strings.Contains(message, "revert") ||
		strings.Contains(message, "gas required exceeds allowance")
}

// l1Fee returns the L1 data fee of an OP-stack rollup in wei, elsewhere 0. A quarter is added,
// rounded up, as L1 prices may rise before inclusion. Source: OP-stack specification,
// GasPriceOracle.getL1Fee.
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

// sweepFeeCap returns the fee of a sweep, which spends all of it, in wei per gas: 1.25 × base fee,
// rounded up, + priority fee. Two full blocks exceed it by no more than the priority fee covers.
func (q networkQuote) sweepFeeCap() chain.Amount {
	return q.baseFee.Add(fraction(q.baseFee, 4)).Add(q.tipCap)
}

// fraction returns the given part (1/parts) of an amount, rounded up.
func fraction(amount chain.Amount, parts uint64) chain.Amount {
	return amount.RoundUpTo(chain.Units(parts)).Share(chain.Units(1), chain.Units(parts))
}

// maxCost returns the most that the transaction should cost, in wei: 1.5 × the fee cap, rounded up.
// That allows three replacements, each an eighth higher.
func (q networkQuote) maxCost() chain.Amount {
	price := q.feeCap()
	return price.Add(fraction(price, 2)).Mul(q.gas).Add(q.l1Fee)
}

// expectedCost returns what the transaction costs at current fees, in wei.
func (q networkQuote) expectedCost() chain.Amount {
	return q.baseFee.Add(q.tipCap).Mul(q.gas).Add(q.l1Fee)
}
