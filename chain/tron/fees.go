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

// prices are the chain parameters that fees follow, in sun.
type prices struct {
	perByte    uint64
	perEnergy  uint64
	activation uint64 // of an account, burnt always
	newAccount uint64 // instead of bandwidth, when an account is activated
	accountNet uint64 // bandwidth that a byte takes then
	feeLimit   uint64 // the highest fee limit that is taken
}

// maxPrice bounds a price that is believed, so that no product with a size or an energy figure overflows.
const maxPrice = 1 << 40

// prices reads the chain parameters.
func (e *endpoint) prices(ctx context.Context) (prices, error) {
	var answer struct {
		List []struct {
			Key   string `json:"key"`
			Value int64  `json:"value"`
		} `json:"chainParameter"`
	}
	if _, err := e.post(ctx, full, "getchainparameters", struct{}{}, &answer); err != nil {
		return prices{}, err
	}

	var p prices

	wanted := map[string]*uint64{
		"getTransactionFee":                      &p.perByte,
		"getEnergyFee":                           &p.perEnergy,
		"getCreateNewAccountFeeInSystemContract": &p.activation,
		"getCreateAccountFee":                    &p.newAccount,
		"getCreateNewAccountBandwidthRate":       &p.accountNet,
		"getMaxFeeLimit":                         &p.feeLimit,
	}
	for _, x := range answer.List {
		if to, ok := wanted[x.Key]; ok {
			if x.Value < 0 || x.Value > maxPrice {
				return prices{}, e.Garbled("chain parameter %s is %d", x.Key, x.Value)
			}

			*to = uint64(x.Value)
			delete(wanted, x.Key)
		}
	}

	for key := range wanted {
		return prices{}, e.Garbled("getchainparameters leaves out %s", key)
	}

	if p.perEnergy == 0 {
		return prices{}, e.Garbled("energy has no price")
	}

	return p, nil
}

// resources are what an account may use without burning coin.
type resources struct {
	staked    uint64 // bandwidth
	allowance uint64 // bandwidth of the day
	energy    uint64
}

func (e *endpoint) resources(ctx context.Context, a address) (resources, error) {
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

// spend is one payment of an order, in the terms of the network.
type spend struct {
	asset  chain.Asset
	from   address
	payee  address // who receives the asset
	amount chain.Amount
	// contract is the token's; the transaction is a transfer of TRX without one.
	contract *address
	// later says that the money comes by another step: what the sender holds now is not looked at.
	later bool
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

	if order.Replaces != nil {
		return spend{}, fault.New(
			fault.Unsupported, "replacement_unsupported",
			"network %s does not replace transactions",
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
		return spend{}, fault.Wrap(
			err, fault.Invalid, codeNotPayable, "%q is no address of network %s",
			out.To, d.network.Slug,
		)
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
	case payee == (address{}), isToken:
		return spend{}, notPayable(payee, "it is the zero address or a token's contract")
	case payee == from && asset.Kind == chain.Native:
		return spend{}, notPayable(payee, "the network takes no transfer of TRX to oneself")
	case out.Amount.IsZero():
		return spend{}, fault.New(fault.Invalid, "amount_too_small", "the order pays %s nothing", out.To)
	case order.SubtractFee && asset.Kind != chain.Native:
		return spend{}, fault.New(
			fault.Invalid, "subtract_fee_invalid", "the network fee can be taken out of %s only",
			d.native.Symbol,
		)
	}

	if units, fits := out.Amount.Uint64(); asset.Kind == chain.Native && (!fits || units > maxSun) {
		return spend{}, fault.New(
			fault.State, "insufficient_funds", "%s base units of %s are more than there are",
			out.Amount, asset.Symbol,
		)
	}

	s := spend{asset: asset, from: from, payee: payee, amount: out.Amount}
	if asset.Kind == chain.Token {
		contract, err := parseAddress(string(asset.Contract))
		if err != nil {
			return spend{}, err
		}

		s.contract = &contract
	}

	return s, nil
}

// maxSun bounds amounts of TRX: transactions hold them in 63 bits.
const maxSun = 1 << 62

const codeNotPayable = "destination_not_payable"

func notPayable(to address, why string) error {
	return fault.New(fault.Invalid, codeNotPayable, "%s cannot be paid: %s", canonical(to), why)
}

// draft is the transaction of a spend, without dates.
func (s spend) draft(feeLimit uint64) *transaction {
	t := &transaction{
		refBytes:   make([]byte, 2),
		refHash:    make([]byte, 8),
		expiration: draftTime,
		timestamp:  draftTime,
		owner:      s.from,
		feeLimit:   int64(feeLimit),
	}
	if s.contract != nil {
		t.kind, t.to, t.data = triggerContract, *s.contract, transferInput(s.payee, s.amount)
	} else {
		sun, _ := s.amount.Uint64()
		t.kind, t.to, t.amount = transferContract, s.payee, int64(sun)
	}

	return t
}

// draftTime takes as many bytes as every time between 1971 and 2109 does.
const draftTime = 1 << 41

// survey is what the network says about a spend right now.
type survey struct {
	prices    prices
	resources resources
	balance   chain.Amount // the sender's, in sun
	held      chain.Amount // the sender's, of the asset
	energy    uint64       // of the call
	activates bool         // the transfer creates the payee's account
}

// survey reads prices, resources and balances, and runs the call of a token transfer. A sender
// without the money is fault.State (insufficient_funds), a destination that cannot be paid
// fault.Invalid (destination_not_payable): a contract as destination of TRX, which the network
// refuses; one that the token's contract has on its black list, where the money would be lost; and
// one for which the token's contract refuses the transfer.
func (d *Driver) survey(ctx context.Context, e *endpoint, s spend) (survey, error) {
	var (
		v           survey
		from, payee accountState
		run         simulation
	)

	blacklisted := false
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { v.prices, err = e.prices(gctx); return })
	g.Go(func() (err error) { v.resources, err = e.resources(gctx, s.from); return })
	g.Go(func() (err error) { from, err = e.account(gctx, full, s.from); return })

	if s.contract == nil {
		g.Go(func() (err error) { payee, err = e.account(gctx, full, s.payee); return })
	} else {
		g.Go(func() (err error) { v.held, err = e.held(gctx, full, holding{s.from, s.asset}); return })
		g.Go(func() (err error) { blacklisted, err = e.blacklisted(gctx, *s.contract, s.payee); return })
		g.Go(func() (err error) {
			run, err = e.simulate(gctx, full, s.from, *s.contract, transferInput(s.payee, s.amount))
			return
		})
	}

	if err := g.Wait(); err != nil {
		return v, err
	}

	v.balance, v.energy = from.balance, run.energy
	if s.contract == nil {
		v.held, v.activates = v.balance, !payee.exists
	}

	switch {
	case payee.contract:
		return v, notPayable(s.payee, "it is a contract, and the network takes no transfer of TRX to one")
	case blacklisted:
		return v, notPayable(s.payee, "it is on the black list of "+s.asset.Symbol)
	case !s.later && v.held.Less(s.amount):
		return v, unfunded(s.from, v.held, s.asset)
	case run.reverted:
		return v, notPayable(s.payee, "the contract of "+s.asset.Symbol+" refuses the transfer")
	case s.contract != nil && v.energy == 0:
		return v, e.Garbled("a call that takes no energy")
	}

	return v, nil
}

// isBlackListedSelector begins the input of isBlackListed(address), as USDT's contract and its
// relatives have it.
var isBlackListedSelector = [4]byte{0xe4, 0x7d, 0x60, 0x60}

// blacklisted asks a token's contract for its black list; one that has none lists nobody.
func (e *endpoint) blacklisted(ctx context.Context, contract, a address) (bool, error) {
	c, err := e.simulate(
		ctx, full, contract, contract, append(isBlackListedSelector[:], addressArgument(a)...),
	)
	if err != nil {
		return false, err
	}

	n, ok := c.number()

	return ok && n == chain.Units(1), nil
}

func unfunded(from address, held chain.Amount, asset chain.Asset) error {
	return fault.New(
		fault.State, "insufficient_funds",
		"%s holds %s base units of %s, too little for what it has to send and its fee",
		canonical(from), held, asset.Symbol,
	)
}

// bandwidthFee is what a transaction of a size will probably burn for bandwidth and activation.
func (v survey) bandwidthFee(size uint64) chain.Amount {
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

// bandwidthMost is the most that it can burn, whatever else uses stake and allowance up or
// activates the account before it.
func (v survey) bandwidthMost(size uint64) chain.Amount {
	most := chain.Units(size * v.prices.perByte)
	if v.activates {
		most = chain.Max(most, chain.Units(v.prices.activation+v.prices.newAccount))
	}

	return most
}

// energyPrice is what the call's energy is worth: the fee limit counts it in whole, staked or not.
func (v survey) energyPrice() chain.Amount { return chain.Units(v.prices.perEnergy).Mul(v.energy) }

// energyFee is what the call will probably burn for energy.
func (v survey) energyFee() chain.Amount {
	return chain.Units(v.prices.perEnergy).Mul(v.energy - min(v.energy, v.resources.energy))
}

// energyRoom is the energy price with a quarter on top, rounded up: a contract that is used much
// becomes dearer within hours, and a receiver that is emptied meanwhile takes a new storage slot.
func (v survey) energyRoom() chain.Amount {
	p := v.energyPrice()
	return p.Add(p.RoundUpTo(chain.Units(4)).Share(chain.Units(1), chain.Units(4)))
}

// cost is what a spend costs: probably, and at most with room for dearer energy.
func (v survey) cost(s spend) (expected, most chain.Amount) {
	size := bandwidth(s.draft(maxPrice).encode())
	if s.contract == nil {
		size = bandwidth(s.draft(0).encode())
	}

	return v.bandwidthFee(size).Add(v.energyFee()), v.bandwidthMost(size).Add(v.energyRoom())
}

// EstimateFee returns the most that the order's transaction should be allowed to cost now, in sun:
// one and a half of what it costs when nothing is staked, rounded up, the activation of the
// destination's account included.
func (d *Driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	s, err := d.spendOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	var fee chain.Amount

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		v, err := d.survey(ctx, e, s)
		if err == nil {
			_, most := v.cost(s)
			fee = most.Add(most.RoundUpTo(chain.Units(2)).Share(chain.Units(1), chain.Units(2)))
		}

		return err
	})
	if err != nil {
		return chain.Amount{}, err
	}

	return fee, nil
}
