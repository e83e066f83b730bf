package evm

import (
	"context"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// plainGas is what a transfer of native coin to an account without code uses: exactly, on every network
// that does not count the publishing of the transaction as gas. Source: Ethereum Yellow Paper, G_transaction.
const plainGas = 21_000

// maxGas bounds a gas estimate that is believed.
const maxGas = 1 << 32

// spend is one payment of an order, in the terms of the network.
type spend struct {
	asset  chain.Asset
	from   common.Address
	payee  common.Address // who receives the asset
	amount chain.Amount
	// to, value and data are the transaction's: the payee itself, or the token's contract.
	to    common.Address
	value chain.Amount
	data  []byte
}

// spendOf reads an order. What can never be paid is fault.Invalid.
func (d *Driver) spendOf(order chain.Order) (spend, error) {
	if len(order.Outputs) != 1 {
		return spend{}, fault.New(fault.Unsupported, "outputs_unsupported",
			"a transaction of network %s pays one destination, not %d", d.network.Slug, len(order.Outputs))
	}

	if order.FeePayer != nil && *order.FeePayer != order.From {
		return spend{}, fault.New(
			fault.Unsupported, "fee_payer_unsupported", "on network %s the sender pays the fee",
			d.network.Slug,
		)
	}

	from, err := parseAddress(string(order.From.Address))
	if err != nil {
		return spend{}, err
	}

	out := order.Outputs[0]

	payee, err := parseAddress(string(out.To))
	if err != nil {
		return spend{}, notPayable(err, out.To)
	}

	asset, ok := d.network.AssetByID(out.AssetID)
	if !ok {
		return spend{}, fault.New(
			fault.Invalid, "asset_not_enabled", "network %s has no asset %s", d.network.Slug,
			out.AssetID,
		)
	}

	_, isToken := d.tokens[payee]
	switch {
	case payee == (common.Address{}), isToken:
		return spend{}, notPayable(nil, out.To)
	// nothing to oneself cancels a nonce
	case out.Amount.IsZero() && (payee != from || asset.Kind == chain.Token):
		return spend{}, fault.New(fault.Invalid, "amount_too_small", "the order pays %s nothing", out.To)
	case order.SubtractFee && asset.Kind != chain.Native:
		return spend{}, fault.New(
			fault.Invalid, "subtract_fee_invalid", "the network fee can be taken out of %s only",
			d.native.Symbol,
		)
	}

	s := spend{asset: asset, from: from, payee: payee, amount: out.Amount}
	if asset.Kind == chain.Token {
		s.to, s.data = common.HexToAddress(string(asset.Contract)), transferInput(payee, out.Amount)
	} else {
		s.to, s.value = payee, out.Amount
	}

	return s, nil
}

func notPayable(cause error, to chain.Address) error {
	const code, text = "destination_not_payable", "%s cannot be paid: it refuses the transfer, or is no " +
		"address for money"
	if cause == nil {
		return fault.New(fault.Invalid, code, text, to)
	}

	return fault.Wrap(cause, fault.Invalid, code, text, to)
}

// survey is what the network says about a spend right now.
type survey struct {
	base, tip chain.Amount // wei per gas: the newest block's base fee, the suggested priority fee
	gas       uint64       // the limit to set
	hasCode   bool         // the payee of native coin runs code
	l1        chain.Amount // the most that publishing may cost on an OP-stack rollup, else 0
	balance   chain.Amount // the sender's, native
	held      chain.Amount // the sender's, of the asset
}

// survey reads prices, gas and balances in one request, and the L1 data fee in another where there is one.
// A sender without the money is fault.State (insufficient_funds), a refused transfer destination_not_payable.
func (d *Driver) survey(ctx context.Context, e *endpoint, s spend) (survey, error) {
	var v survey

	header := newCall("eth_getBlockByNumber", "latest", false)
	tip := newCall("eth_maxPriorityFeePerGas")
	gas := newCall("eth_estimateGas", map[string]any{
		"from":  s.from,
		"to":    s.to,
		"value": (*hexutil.Big)(s.value.Big()),
		"data":  hexutil.Bytes(s.data),
	})
	code := newCall("eth_getCode", s.payee, "latest")
	balance := newCall("eth_getBalance", s.from, "latest")
	held := balance
	calls := []*call{header, tip, gas, code, balance}

	if s.asset.Kind == chain.Token {
		var err error
		if held, err = d.balanceCall(
			chain.Holding{Address: canonical(s.from), AssetID: s.asset.ID}, "latest",
		); err != nil {
			return v, err
		}

		calls = append(calls, held)
	}

	if err := e.do(ctx, calls...); err != nil {
		return v, err
	}

	var err error
	if v.base, v.tip, err = e.prices(ctx, header, tip); err != nil {
		return v, err
	}

	if v.balance, err = balance.balance(e); err != nil {
		return v, err
	}

	if v.held, err = held.balance(e); err != nil {
		return v, err
	}

	if v.held.Less(s.amount) {
		return v, d.unfunded(s, v.held)
	}

	var deployed hexutil.Bytes
	if err := code.decode(e, &deployed); err != nil {
		return v, err
	}

	v.hasCode = s.asset.Kind == chain.Native && len(deployed) > 0
	if v.gas, err = gas.gasLimit(e, s); err != nil {
		return v, err
	}

	v.l1, err = d.l1Fee(ctx, e, s, v)

	return v, err
}

func (d *Driver) unfunded(s spend, held chain.Amount) error {
	return fault.New(
		fault.State, "insufficient_funds",
		"%s holds %s base units of %s, too little for what it has to send and its fee",
		canonical(s.from), held, s.asset.Symbol,
	)
}

// prices reads base fee and priority fee; a node without eth_maxPriorityFeePerGas is asked for
// eth_gasPrice, which is the sum of both.
func (e *endpoint) prices(ctx context.Context, header, tip *call) (base, priority chain.Amount, err error) {
	var h headerJSON
	if err = header.decode(e, &h); err != nil {
		return
	}

	if base, err = e.price(h.BaseFeePerGas); err != nil {
		return
	}

	var n hexutil.Big

	if noMethod(tip.err) {
		sum := newCall("eth_gasPrice")
		if err = e.do(ctx, sum); err != nil {
			return
		}

		if err = sum.decode(e, &n); err != nil {
			return
		}

		if priority, err = e.price(&n); err != nil {
			return
		}

		return base, priority.SubFloor(base), nil
	}

	if err = tip.decode(e, &n); err != nil {
		return
	}

	priority, err = e.price(&n)

	return
}

// gasLimit reads a gas estimate: as it is for a plain transfer of native coin, else with a fifth on top,
// rounded up, since the state may change until the transaction is included.
func (c *call) gasLimit(e *endpoint, s spend) (uint64, error) {
	if reverts(c.err) {
		return 0, notPayable(c.err, canonical(s.payee))
	}

	var gas hexutil.Uint64
	if err := c.decode(e, &gas); err != nil {
		return 0, err
	}

	if gas < plainGas || gas > maxGas {
		return 0, e.Garbled("a gas estimate of %d", uint64(gas))
	}

	if gas == plainGas {
		return plainGas, nil
	}

	return uint64(gas) + (uint64(gas)+4)/5, nil
}

// reverts says that the node ran the call and the contract refused it. go-ethereum, Erigon, Reth and Anvil
// answer code 3; Nethermind -32015; others, and a call that burns all gas, only say so in words.
func reverts(err error) bool {
	r, ok := errors.AsType[*failover.Refusal](err)
	if !ok {
		return false
	}

	words := strings.ToLower(r.Message)

	return r.Code == codeReverted || r.Code == -32015 || strings.Contains(words, "revert") ||
		strings.Contains(words, "gas required exceeds allowance")
}

// l1Fee asks the rollup's oracle what publishing the transaction costs and adds a quarter, rounded
// up: the price of L1 blobs and gas may rise before it is included. Source: OP-stack specification,
// GasPriceOracle.getL1Fee.
func (d *Driver) l1Fee(ctx context.Context, e *endpoint, s spend, v survey) (chain.Amount, error) {
	if d.l1Oracle == nil {
		return chain.Amount{}, nil
	}
	// Sizes count, not values: every number as long as it will be.
	price := v.base.Add(v.base).Add(v.tip)
	raw := (&envelope{
		chainID: d.network.ChainID,
		nonce:   1 << 32,
		tip:     price,
		cap:     price,
		gas:     v.gas,
		to:      s.to,
		value:   s.value,
		data:    s.data,
	}).encode()

	c := viewCall(*d.l1Oracle, getL1FeeInput(raw), "latest")
	if err := e.do(ctx, c); err != nil {
		return chain.Amount{}, err
	}

	fee, err := c.word(e)
	if err != nil {
		return fee, err
	}

	if chain.MaxTransfer.Less(fee) {
		return fee, e.Garbled("an L1 data fee of %s wei", fee)
	}

	return fee.Add(quarterUp(fee)), nil
}

// getL1FeeInput is the ABI encoding of getL1Fee(bytes).
func getL1FeeInput(raw []byte) []byte {
	length := chain.Units(uint64(len(raw))).Bytes32()
	offset := chain.Units(32).Bytes32()
	in := append([]byte{0x49, 0x94, 0x8e, 0x0e}, offset[:]...)
	in = append(in, length[:]...)

	return append(in, common.RightPadBytes(raw, (len(raw)+31)/32*32)...)
}

// ceiling is the price per gas to offer: room for the base fee to double.
func (v survey) ceiling() chain.Amount { return v.base.Add(v.base).Add(v.tip) }

// exact is the price per gas of a sweep, all of which is spent: the base fee with a quarter on top, rounded
// up, which two full blocks do not exceed by more than the priority fee covers.
func (v survey) exact() chain.Amount { return v.base.Add(quarterUp(v.base)).Add(v.tip) }

func quarterUp(a chain.Amount) chain.Amount {
	return a.RoundUpTo(chain.Units(4)).Share(chain.Units(1), chain.Units(4))
}

// allowance is the most that the transaction should be allowed to cost: one and a half of the ceiling,
// rounded up, so that it can be replaced three times at an eighth more each.
func (v survey) allowance() chain.Amount {
	price := v.ceiling()
	half := price.RoundUpTo(chain.Units(2)).Share(chain.Units(1), chain.Units(2))

	return price.Add(half).Mul(v.gas).Add(v.l1)
}

// expected is what the transaction will probably cost.
func (v survey) expected() chain.Amount { return v.base.Add(v.tip).Mul(v.gas).Add(v.l1) }

// EstimateFee returns the most that the order's transaction should be allowed to cost now, in wei: gas
// limit × 1.5 × (2 × base fee + priority fee), and the L1 data fee of an OP-stack rollup.
func (d *Driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	s, err := d.spendOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	var fee chain.Amount

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		v, err := d.survey(ctx, e, s)
		if err == nil {
			fee = v.allowance()
		}

		return err
	})

	return fee, err
}
