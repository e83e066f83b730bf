package tron

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// What a transaction costs on Tron. Source: java-tron, BandwidthProcessor, TransferActuator,
// ReceiptCapsule.payEnergyBill.
//
// Every byte takes bandwidth: from what the sender staked, else from its daily allowance if that
// covers all of it, else burnt at a price per byte. A transfer of TRX that activates an account
// takes staked bandwidth or a fixed fee, never the allowance, and another fixed fee. A call takes
// energy: from what the sender staked, the rest burnt at a price per unit, up to the transaction's
// fee limit. Allowance and stake may be gone when the transaction is included, so what it may cost
// at most counts neither.

// chainParams are the chain parameters that fees follow, in sun.
type chainParams struct {
	perByte    uint64
	perEnergy  uint64
	activation uint64 // of an account, burnt always
	newAccount uint64 // instead of bandwidth, when an account is activated
	accountNet uint64 // bandwidth that a byte takes then
	feeLimit   uint64 // the highest fee limit that is taken
}

// maxPrice bounds a price that is believed, so that no product with a size or an energy figure overflows.
const maxPrice = 1 << 40

// readPrices reads the chain parameters.
func (e *endpoint) readPrices(ctx context.Context) (chainParams, error) {
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
	}
	for _, x := range answer.List {
		if to, ok := wanted[x.Key]; ok {
			if x.Value < 0 || x.Value > maxPrice {
				return chainParams{}, e.Garbled("chain parameter %s is %d", x.Key, x.Value)
			}

			*to = uint64(x.Value)
			delete(wanted, x.Key)
		}
	}

	for key := range wanted {
		return chainParams{}, e.Garbled("getchainparameters leaves out %s", key)
	}

	if params.perEnergy == 0 {
		return chainParams{}, e.Garbled("energy has no price")
	}

	return params, nil
}

// resources are what an account may use without burning coin.
type resources struct {
	staked    uint64 // bandwidth
	allowance uint64 // bandwidth of the day
	energy    uint64
}

func (e *endpoint) readResources(ctx context.Context, a address) (resources, error) {
	var r struct {
		FreeUsed    int64 `json:"freeNetUsed"`
		FreeLimit   int64 `json:"freeNetLimit"`
		NetUsed     int64 `json:"NetUsed"`
		NetLimit    int64 `json:"NetLimit"`
		EnergyUsed  int64 `json:"EnergyUsed"`
		EnergyLimit int64 `json:"EnergyLimit"`
	}
	if _, err := e.post(ctx, full, "getaccountresource", addressRequest{nodeHex(a)}, &r); err != nil {
		return resources{}, err
	}

	left := func(limit, used int64) uint64 { return uint64(max(0, min(limit, maxEnergy)-max(0, used))) }

	return resources{
		staked:    left(r.NetLimit, r.NetUsed),
		allowance: left(r.FreeLimit, r.FreeUsed),
		energy:    left(r.EnergyLimit, r.EnergyUsed),
	}, nil
}

// paymentParams is one payment of an order, in the terms of the network.
type paymentParams struct {
	asset  chain.Asset
	from   address
	payee  address // who receives the asset
	amount chain.Amount
	// contract is the token's; the transaction is a transfer of TRX without one.
	contract *address
	// fundedLater says that the money comes by another step: what the sender holds now is not looked at.
	fundedLater bool
}

// paymentOf reads an order. What can never be paid is fault.Invalid.
func (d *Driver) paymentOf(order chain.Order) (paymentParams, error) {
	if len(order.Outputs) != 1 {
		return paymentParams{}, fault.New(fault.Unsupported, "outputs_unsupported",
			"a transaction of network %s pays one destination, not %d", d.network.Slug, len(order.Outputs))
	}

	if order.FeePayer != nil && *order.FeePayer != order.From {
		return paymentParams{}, fault.New(
			fault.Unsupported, "fee_payer_unsupported", "on network %s the sender pays the fee",
			d.network.Slug,
		)
	}

	if order.Replaces != nil {
		return paymentParams{}, fault.New(
			fault.Unsupported, "replacement_unsupported",
			"network %s does not replace transactions",
			d.network.Slug,
		)
	}

	from, err := parseAddress(string(order.From.Address))
	if err != nil {
		return paymentParams{}, err
	}

	out := order.Outputs[0]

	payee, err := parseAddress(string(out.To))
	if err != nil {
		return paymentParams{}, fault.Wrap(
			err, fault.Invalid, codeNotPayable, "%q is no address of network %s",
			out.To, d.network.Slug,
		)
	}

	asset, ok := d.network.AssetByID(out.AssetID)
	if !ok {
		return paymentParams{}, fault.New(
			fault.Invalid, "asset_not_enabled", "network %s has no asset %s", d.network.Slug,
			out.AssetID,
		)
	}

	_, isToken := d.tokens[payee]
	switch {
	case payee == (address{}), isToken:
		return paymentParams{}, notPayable(payee, "it is the zero address or a token's contract")
	case payee == from && asset.Kind == chain.Native:
		return paymentParams{}, notPayable(payee, "the network takes no transfer of TRX to oneself")
	case out.Amount.IsZero():
		return paymentParams{}, fault.New(fault.Invalid, "amount_too_small", "the order pays %s nothing", out.To)
	case order.SubtractFee && asset.Kind != chain.Native:
		return paymentParams{}, fault.New(
			fault.Invalid, "subtract_fee_invalid", "the network fee can be taken out of %s only",
			d.native.Symbol,
		)
	}

	if units, fits := out.Amount.Uint64(); asset.Kind == chain.Native && (!fits || units > maxSun) {
		return paymentParams{}, fault.New(
			fault.State, "insufficient_funds", "%s base units of %s are more than there are",
			out.Amount, asset.Symbol,
		)
	}

	payment := paymentParams{asset: asset, from: from, payee: payee, amount: out.Amount}
	if asset.Kind == chain.Token {
		contract, err := parseAddress(string(asset.Contract))
		if err != nil {
			return paymentParams{}, err
		}

		payment.contract = &contract
	}

	return payment, nil
}

// maxSun bounds amounts of TRX: transactions hold them in 63 bits.
const maxSun = 1 << 62

const codeNotPayable = "destination_not_payable"

func notPayable(to address, why string) error {
	return fault.New(fault.Invalid, codeNotPayable, "%s cannot be paid: %s", canonical(to), why)
}

// draft is the transaction of a spend, without dates.
func (s paymentParams) draft(feeLimit uint64) *transaction {
	tx := &transaction{
		refBytes:   make([]byte, 2),
		refHash:    make([]byte, 8),
		expiration: draftTime,
		timestamp:  draftTime,
		owner:      s.from,
		feeLimit:   int64(feeLimit),
	}
	if s.contract != nil {
		tx.kind, tx.to, tx.data = triggerContract, *s.contract, transferInput(s.payee, s.amount)
	} else {
		sun, _ := s.amount.Uint64()
		tx.kind, tx.to, tx.amount = transferContract, s.payee, int64(sun)
	}

	return tx
}

// draftTime takes as many bytes as every time between 1971 and 2109 does.
const draftTime = 1 << 41

// feeQuote is what the network says about a spend right now.
type feeQuote struct {
	prices    chainParams
	resources resources
	balance   chain.Amount // the sender's, in sun
	assetBalance      chain.Amount // the sender's, of the asset
	energy    uint64       // of the call
	activates bool         // the transfer creates the payee's account
}

// quote reads prices, resources and balances, and runs the call of a token transfer. A sender
// without the money is fault.State (insufficient_funds), a destination that cannot be paid
// fault.Invalid (destination_not_payable): a contract as destination of TRX, which the network
// refuses; one that the token's contract has on its black list, where the money would be lost; and
// one for which the token's contract refuses the transfer.
func (d *Driver) quote(ctx context.Context, e *endpoint, payment paymentParams) (feeQuote, error) {
	var (
		result           feeQuote
		from, payee accountState
		call         callResult
	)

	blacklisted := false
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { result.prices, err = e.readPrices(gctx); return })
	g.Go(func() (err error) { result.resources, err = e.readResources(gctx, payment.from); return })
	g.Go(func() (err error) { from, err = e.account(gctx, full, payment.from); return })

	if payment.contract == nil {
		g.Go(func() (err error) { payee, err = e.account(gctx, full, payment.payee); return })
	} else {
		g.Go(func() (err error) { result.assetBalance, err = e.balanceOf(gctx, full, holding{payment.from, payment.asset}); return })
		g.Go(func() (err error) { blacklisted, err = e.blacklisted(gctx, *payment.contract, payment.payee); return })
		g.Go(func() (err error) {
			call, err = e.simulate(gctx, full, payment.from, *payment.contract, transferInput(payment.payee, payment.amount))
			return
		})
	}

	if err := g.Wait(); err != nil {
		return result, err
	}

	result.balance, result.energy = from.balance, call.energy
	if payment.contract == nil {
		result.assetBalance, result.activates = result.balance, !payee.exists
	}

	switch {
	case payee.contract:
		return result, notPayable(payment.payee, "it is a contract, and the network takes no transfer of TRX to one")
	case blacklisted:
		return result, notPayable(payment.payee, "it is on the black list of "+payment.asset.Symbol)
	case !payment.fundedLater && result.assetBalance.Less(payment.amount):
		return result, insufficientFunds(payment.from, result.assetBalance, payment.asset)
	case call.reverted:
		return result, notPayable(payment.payee, "the contract of "+payment.asset.Symbol+" refuses the transfer")
	case payment.contract != nil && result.energy == 0:
		return result, e.Garbled("a call that takes no energy")
	}

	return result, nil
}

// isBlackListedSelector begins the input of isBlackListed(address), as USDT's contract and its
// relatives have it.
var isBlackListedSelector = [4]byte{0xe4, 0x7d, 0x60, 0x60}

// blacklisted asks a token's contract for its black list; one that has none lists nobody.
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

func insufficientFunds(from address, held chain.Amount, asset chain.Asset) error {
	return fault.New(
		fault.State, "insufficient_funds",
		"%s holds %s base units of %s, too little for what it has to send and its fee",
		canonical(from), held, asset.Symbol,
	)
}

// bandwidthFee is what a transaction of a size will probably burn for bandwidth and activation.
func (v feeQuote) bandwidthFee(size uint64) chain.Amount {
	switch {
	case v.activates && v.resources.staked >= size*v.prices.accountNet:
		return chain.Units(v.prices.activation)
	case v.activates:
		return chain.Units(v.prices.activation + v.prices.newAccount)
	case v.resources.staked >= size, v.resources.allowance >= size:
		return chain.Amount{}
	}

	return chain.Units(size * v.prices.perByte)
}

// maxBandwidthFee is the most that it can burn, whatever else uses stake and allowance up or
// activates the account before it.
func (v feeQuote) maxBandwidthFee(size uint64) chain.Amount {
	most := chain.Units(size * v.prices.perByte)
	if v.activates {
		most = chain.Max(most, chain.Units(v.prices.activation+v.prices.newAccount))
	}

	return most
}

// energyCost is what the call's energy is worth: the fee limit counts it in whole, staked or not.
func (v feeQuote) energyCost() chain.Amount { return chain.Units(v.prices.perEnergy).Mul(v.energy) }

// energyFee is what the call will probably burn for energy.
func (v feeQuote) energyFee() chain.Amount {
	return chain.Units(v.prices.perEnergy).Mul(v.energy - min(v.energy, v.resources.energy))
}

// energyFeeLimit is the energy price with a quarter on top, rounded up: a contract that is used much
// becomes dearer within hours, and a receiver that is emptied meanwhile takes a new storage slot.
func (v feeQuote) energyFeeLimit() chain.Amount {
	p := v.energyCost()
	return p.Add(p.RoundUpTo(chain.Units(4)).Share(chain.Units(1), chain.Units(4)))
}

// fees is what a spend costs: probably, and at most with room for dearer energy.
func (v feeQuote) fees(payment paymentParams) (expected, most chain.Amount) {
	size := bandwidthOf(payment.draft(maxPrice).encode())
	if payment.contract == nil {
		size = bandwidthOf(payment.draft(0).encode())
	}

	return v.bandwidthFee(size).Add(v.energyFee()), v.maxBandwidthFee(size).Add(v.energyFeeLimit())
}

// EstimateFee returns the most that the order's transaction should be allowed to cost now, in sun:
// one and a half of what it costs when nothing is staked, rounded up, the activation of the
// destination's account included.
func (d *Driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	payment, err := d.paymentOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	var fee chain.Amount

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		quote, err := d.quote(ctx, e, payment)
		if err == nil {
			_, most := quote.fees(payment)
			fee = most.Add(most.RoundUpTo(chain.Units(2)).Share(chain.Units(1), chain.Units(2)))
		}

		return err
	})
	if err != nil {
		return chain.Amount{}, err
	}

	return fee, nil
}
