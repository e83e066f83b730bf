package tron

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Fees on Tron. Source: java-tron, BandwidthProcessor, TransferActuator, ReceiptCapsule.payEnergyBill.
//
// Bandwidth: each byte uses the sender's stake, else its daily allowance if that covers all of them, else
// TRX is burnt per byte. A transfer of TRX that activates an account burns a fixed fee. Instead of bandwidth
// it uses stake or burns another fixed fee, never the allowance.
//
// Energy: a call uses the sender's stake and burns TRX per further unit, up to the fee limit.
//
// Stake and allowance may be used up before the transaction is included: the maximum counts neither.

// chainParams are the chain parameters that fees depend on, in sun unless noted.
type chainParams struct {
	perByte    uint64
	perEnergy  uint64
	activation uint64 // of an account, always burnt
	newAccount uint64 // instead of bandwidth, when an account is activated
	accountNet uint64 // staked bandwidth per byte, when an account is activated
	freeNet    uint64 // bytes of bandwidth, the daily allowance of every active account
	feeLimit   uint64 // the highest fee limit that nodes accept
}

// maxPrice bounds the prices of a node, in sun, so that no product with a size or an energy overflows.
const maxPrice = 1 << 40

// unsetEnergyPrice is what nodes charge for a unit of energy while the chain has no price for it, in sun. Source:
// java-tron, Constant.SUN_PER_ENERGY in ReceiptCapsule.payEnergyBill.
const unsetEnergyPrice = 100

// readChainParams returns the chain parameters of a node (getchainparameters).
func (e *endpoint) readChainParams(ctx context.Context) (chainParams, error) {
	var answer struct {
		List []struct {
			Key   string `json:"key"`
			Value int64  `json:"value"`
		} `json:"chainParameter"`
	}
	if _, err := e.post(ctx, full, "getchainparameters", struct{}{}, &answer); err != nil {
		return chainParams{}, err
	}

	var params chainParams

	wanted := map[string]*uint64{
		"getTransactionFee":                      &params.perByte,
		"getEnergyFee":                           &params.perEnergy,
		"getCreateNewAccountFeeInSystemContract": &params.activation,
		"getCreateAccountFee":                    &params.newAccount,
		"getCreateNewAccountBandwidthRate":       &params.accountNet,
		"getMaxFeeLimit":                         &params.feeLimit,
		"getFreeNetLimit":                        &params.freeNet,
	}
	for _, param := range answer.List {
		if field, ok := wanted[param.Key]; ok {
			if param.Value < 0 || param.Value > maxPrice {
				return chainParams{}, e.Garbled("chain parameter %s is %d", param.Key, param.Value)
			}

			*field = uint64(param.Value)
			delete(wanted, param.Key)
		}
	}

	for key := range wanted {
		return chainParams{}, e.Garbled("getchainparameters leaves out %s", key)
	}

	if params.perEnergy == 0 {
		params.perEnergy = unsetEnergyPrice
	}

	return params, nil
}

// resources are what an account may use without burning TRX.
type resources struct {
	staked    uint64 // bytes of bandwidth
	allowance uint64 // bytes of bandwidth, of the day
	energy    uint64

	// totalEnergy is what all stakes of the network have together, by a weight of totalWeight.
	totalEnergy, totalWeight uint64
}

// readResources returns the unused resources of an account (getaccountresource).
func (e *endpoint) readResources(ctx context.Context, a address) (resources, error) {
	var r struct {
		FreeUsed    int64 `json:"freeNetUsed"`
		FreeLimit   int64 `json:"freeNetLimit"`
		NetUsed     int64 `json:"NetUsed"`
		NetLimit    int64 `json:"NetLimit"`
		EnergyUsed  int64 `json:"EnergyUsed"`
		EnergyLimit int64 `json:"EnergyLimit"`
		TotalEnergy int64 `json:"TotalEnergyLimit"`
		TotalWeight int64 `json:"TotalEnergyWeight"`
	}
	if _, err := e.post(ctx, full, "getaccountresource", addressRequest{nodeHex(a)}, &r); err != nil {
		return resources{}, err
	}

	left := func(limit, used int64) uint64 { return uint64(max(0, min(limit, maxEnergy)-max(0, used))) }

	return resources{
		staked:    left(r.NetLimit, r.NetUsed),
		allowance: left(r.FreeLimit, r.FreeUsed),
		energy:    left(r.EnergyLimit, r.EnergyUsed),

		totalEnergy: uint64(max(0, r.TotalEnergy)),
		totalWeight: uint64(max(0, r.TotalWeight)),
	}, nil
}

// feeQuote holds the current prices, resources and balances for a payment.
type feeQuote struct {
	params       chainParams
	resources    resources
	balance      chain.Amount // of the sender, in sun
	assetBalance chain.Amount // of the sender, in base units of the asset
	energy       uint64       // of the call
	activates    bool         // the transfer creates the payee's account
}

// quote reads prices, resources and balances, and simulates the call of a token transfer. It errors:
//   - fault.State (insufficient_funds): the sender does not hold the amount
//   - fault.Invalid (destination_not_payable): the payee of TRX is a contract, which the network refuses
//   - the same: the token's contract blacklists the payee, where the tokens would be lost, or the sender, or refuses
//     the transfer
func (d *driver) quote(ctx context.Context, node *endpoint, payment paymentParams) (feeQuote, error) {
	var (
		quote       feeQuote
		from, payee accountState
		call        callResult
		blacklisted bool
	)

	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { quote.params, err = node.readChainParams(gctx); return })
	g.Go(func() (err error) { quote.resources, err = node.readResources(gctx, payment.from); return })
	g.Go(func() (err error) { from, err = node.account(gctx, full, payment.from); return })

	if payment.contract == nil {
		g.Go(func() (err error) { payee, err = node.account(gctx, full, payment.payee); return })
	}

	if payment.stake != 0 {
		g.Go(func() (err error) { quote.assetBalance, err = node.movableStake(gctx, payment); return })
	}

	if payment.contract != nil {
		contract, input := *payment.contract, transferInput(payment.payee, payment.amount)

		g.Go(func() (err error) {
			quote.assetBalance, err = node.balanceOf(gctx, full, holding{payment.from, payment.asset})
			if errors.Is(err, errNoNumber) {
				err = node.Garbled("%v", err)
			}

			return
		})
		g.Go(
			func() (err error) { blacklisted, err = node.blacklisted(gctx, contract, payment.payee); return },
		)
		g.Go(
			func() (err error) { call, err = node.simulate(gctx, full, payment.from, contract, input); return },
		)
	}

	if err := g.Wait(); err != nil {
		return quote, err
	}

	if err := d.checkPrices(node, quote.params, call.energy); err != nil {
		return quote, err
	}

	quote.params.feeLimit = min(quote.params.feeLimit, d.maxFeeLimit)

	quote.balance, quote.energy = from.balance, call.energy
	if !from.exists {
		quote.resources.allowance = quote.params.freeNet // it has one from its activation on
	}

	if payment.contract == nil && payment.stake == 0 {
		quote.assetBalance, quote.activates = quote.balance, !payee.exists
	}

	if call.reverted && !blacklisted {
		listed, err := node.blacklisted(ctx, *payment.contract, payment.from)
		if err != nil {
			return quote, err
		}

		if listed {
			return quote, notPayable(
				payment.payee,
				"the sender "+string(
					canonical(payment.from),
				)+" is on the black list of "+payment.asset.Symbol,
			)
		}
	}

	err := payment.refusal(quote, payee.contract, blacklisted, call.reverted)
	if err == nil && payment.stake == delegateContract && !payee.exists && !payment.fundedLater {
		err = insufficientStake(payment, "the receiver is not active yet")
	}

	if err == nil && payment.contract != nil && quote.energy == 0 {
		err = node.Garbled("a call that takes no energy")
	}

	return quote, err
}

// The highest prices of bandwidth and of a new account at which transactions are made, in sun: ten times those of 2026.
const (
	maxBytePrice    = 10_000
	maxAccountPrice = 11_000_000
)

// checkPrices returns fault.Limited (fee_above_maximum) for prices of a node above the highest ones, and for a call
// that needs a fee limit above Config.MaxFeeLimit. No block proves a price.
func (d *driver) checkPrices(node *endpoint, params chainParams, energy uint64) error {
	tooDear := func(what string, said, highest uint64) error {
		return fault.Wrap(
			fmt.Errorf("node %s says so", node.Host),
			fault.Limited, "fee_above_maximum", "network %s asks for %d sun %s, more than %d",
			d.network.Slug, said, what, highest,
		)
	}

	switch {
	case params.perEnergy > d.maxEnergyPrice:
		return tooDear("a unit of energy (Config.MaxEnergyPrice)", params.perEnergy, d.maxEnergyPrice)
	case params.perByte > maxBytePrice:
		return tooDear("a byte of bandwidth", params.perByte, maxBytePrice)
	case params.activation+params.newAccount > maxAccountPrice:
		return tooDear("a new account", params.activation+params.newAccount, maxAccountPrice)
	case energy > d.maxFeeLimit/params.perEnergy:
		return tooDear(
			"for a call (Config.MaxFeeLimit)", energy*params.perEnergy, d.maxFeeLimit,
		)
	}

	return nil
}

// refusal returns why the network would not carry a payment out; nil if it would.
func (p paymentParams) refusal(quote feeQuote, toContract, blacklisted, reverted bool) error {
	switch {
	case toContract:
		return notPayable(p.payee, "it is a contract, and the network takes no TRX or energy to one")
	case blacklisted:
		return notPayable(p.payee, "it is on the black list of "+p.asset.Symbol)
	case p.stake != 0 && quote.assetBalance.Less(p.amount):
		return insufficientStake(p, "only "+quote.assetBalance.String()+" can be moved")
	case p.stake == 0 && !p.fundedLater && quote.assetBalance.Less(p.amount):
		return insufficientFunds(p.from, quote.assetBalance, p.asset)
	case reverted:
		return notPayable(p.payee, "the contract of "+p.asset.Symbol+" refuses the transfer")
	default:
		return nil
	}
}

// isBlackListedSelector begins the input of isBlackListed(address), a function of USDT's contract and its
// derivatives.
var isBlackListedSelector = [4]byte{0xe4, 0x7d, 0x60, 0x60}

// blacklisted reports whether a token's contract has an address on its black list; false without one.
func (e *endpoint) blacklisted(ctx context.Context, contract, a address) (bool, error) {
	call, err := e.simulate(
		ctx, full, contract, contract, append(isBlackListedSelector[:], addressArgument(a)...),
	)
	if err != nil {
		return false, err
	}

	n, ok := call.uint256()

	return ok && n == chain.Units(1), nil
}

func insufficientFunds(from address, balance chain.Amount, asset chain.Asset) error {
	return fault.New(
		fault.State, "insufficient_funds",
		"%s holds %s base units of %s, too little for what it has to send and its fee",
		canonical(from), balance, asset.Symbol,
	)
}

// bandwidthFee returns the expected burn for bandwidth and activation, in sun, of a transaction of a size in
// bytes of bandwidth.
func (q feeQuote) bandwidthFee(size uint64) chain.Amount {
	switch {
	case q.activates && q.resources.staked >= size*q.params.accountNet:
		return chain.Units(q.params.activation)
	case q.activates:
		return chain.Units(q.params.activation + q.params.newAccount)
	case q.resources.staked >= size, q.resources.allowance >= size:
		return chain.Amount{}
	}

	return chain.Units(size * q.params.perByte)
}

// maxBandwidthFee returns the largest burn for bandwidth and activation, in sun: without stake and allowance.
func (q feeQuote) maxBandwidthFee(size uint64) chain.Amount {
	most := chain.Units(size * q.params.perByte)
	if q.activates {
		most = chaindata.Max(most, chain.Units(q.params.activation+q.params.newAccount))
	}

	return most
}

// energyCost returns the price of the call's energy in sun. The fee limit counts all of it, staked or not.
func (q feeQuote) energyCost() chain.Amount { return chain.Units(q.params.perEnergy).Mul(q.energy) }

// energyFee returns the expected burn for the call's energy, in sun.
func (q feeQuote) energyFee() chain.Amount {
	return chain.Units(q.params.perEnergy).Mul(q.energy - min(q.energy, q.resources.energy))
}

// energyFeeLimit returns five quarters of energyCost, rounded up, in sun. The energy factor of a popular
// contract rises within hours, and a receiver that is emptied meanwhile needs a new storage slot.
func (q feeQuote) energyFeeLimit() chain.Amount {
	cost := q.energyCost()
	quarter := cost.RoundUpTo(chain.Units(4)).Share(chain.Units(1), chain.Units(4))

	return cost.Add(quarter)
}

// fees returns the expected and the largest fee of a payment, in sun.
func (q feeQuote) fees(payment paymentParams) (expected, maxFee chain.Amount) {
	size := bandwidthOf(payment.draft(maxPrice).encode())
	if payment.contract == nil {
		size = bandwidthOf(payment.draft(0).encode())
	}

	return q.bandwidthFee(size).Add(q.energyFee()), q.maxBandwidthFee(size).Add(q.energyFeeLimit())
}

// EstimateFee returns one and a half of the order's fee without stake or allowance, rounded up, in sun. It
// includes the activation of the destination's account. Where two nodes answer it is what both lead to, and a refusal
// is that of two: one that does not refuse decides.
func (d *driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	payment, err := d.paymentOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	fee, words, err := askTwo(
		ctx, d, "the fee of a transaction of "+string(order.From.Address),
		func(ctx context.Context, node *endpoint) (chain.Amount, error) {
			quote, err := d.quote(ctx, node, payment)
			if err != nil {
				return chain.Amount{}, err
			}

			_, most := quote.fees(payment)

			return most.Add(most.RoundUpTo(chain.Units(2)).Share(chain.Units(1), chain.Units(2))), nil
		},
		func(_ context.Context, a, b word[chain.Amount]) (chain.Amount, bool) {
			return a.value, a.value == b.value
		},
	)

	accepted := slices.DeleteFunc(words, func(w word[chain.Amount]) bool { return w.refusal != nil })
	if len(accepted) == 1 {
		return accepted[0].value, nil
	}

	return fee, err
}
