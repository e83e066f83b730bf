package tron

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// paymentParams are the parameters of an order's one payment.
type paymentParams struct {
	asset chain.Asset
	from  address
	// permission is the id of the sender's permission that signs.
	permission int64
	payee      address      // receiver of the asset
	amount     chain.Amount // base units of the asset
	// contract is the token's; nil for a transfer of TRX.
	contract *address
	// stake is delegateContract or undelegateContract where the payee gets or loses energy of the sender's stake,
	// amount sun of it; 0 for payments.
	stake contractType
	// fundedLater means that an earlier step provides the money: the sender's balance is not checked.
	fundedLater bool
}

// paymentOf returns the payment of an order. It errors:
//   - fault.Unsupported (outputs_unsupported, fee_payer_unsupported, replacement_unsupported): Tron has no
//     such transactions
//   - fault.Invalid (address_invalid, destination_not_payable, asset_not_enabled, amount_too_small,
//     subtract_fee_invalid): the order can never be paid
//   - fault.State (insufficient_funds): the amount is more TRX than there are
func (d *driver) paymentOf(order chain.Order) (paymentParams, error) {
	if err := d.checkOrder(order); err != nil {
		return paymentParams{}, err
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

	asset, stake, err := d.assetOf(out)
	if err != nil {
		return paymentParams{}, err
	}

	payment := paymentParams{
		asset:      asset,
		from:       from,
		permission: d.permissions[from],
		payee:      payee,
		amount:     out.Amount,
		stake:      stake,
	}
	if err := d.checkPayment(order, payment); err != nil {
		return paymentParams{}, err
	}

	if asset.Kind == chain.Token {
		contract, err := parseAddress(string(asset.Contract))
		if err != nil {
			return paymentParams{}, err
		}

		payment.contract = &contract
	}

	return payment, nil
}

// assetOf returns the asset of an output, and what it does with stake of that asset; 0 for a payment.
func (d *driver) assetOf(out chain.Output) (asset chain.Asset, stake contractType, err error) {
	switch {
	case out.AssetID == chaindata.DelegateEnergy && d.delegates:
		return d.native, delegateContract, nil
	case out.AssetID == chaindata.UndelegateEnergy:
		return d.native, undelegateContract, nil
	}

	asset, ok := d.network.AssetByID(out.AssetID)
	if !ok {
		return asset, 0, fault.New(
			fault.Invalid, "asset_not_enabled", "network %s has no asset %s", d.network.Slug,
			out.AssetID,
		)
	}

	return asset, 0, nil
}

// checkOrder returns fault.Unsupported for an order that Tron has no transactions for.
func (d *driver) checkOrder(order chain.Order) error {
	switch {
	case len(order.Outputs) != 1:
		return fault.New(
			fault.Unsupported, "outputs_unsupported",
			"a transaction of network %s pays one destination, not %d", d.network.Slug, len(order.Outputs),
		)
	case order.FeePayer != nil && *order.FeePayer != order.From:
		return fault.New(
			fault.Unsupported, "fee_payer_unsupported", "on network %s the sender pays the fee",
			d.network.Slug,
		)
	case order.Replaces != nil:
		return fault.New(
			fault.Unsupported, "replacement_unsupported",
			"network %s does not replace transactions",
			d.network.Slug,
		)
	}

	return nil
}

// checkPayment returns an error for a payment that the network refuses or that would be lost.
func (d *driver) checkPayment(order chain.Order, payment paymentParams) error {
	isNative := payment.asset.Kind == chain.Native
	_, isToken := d.tokens[payment.payee]

	switch {
	case payment.payee == (address{}), isToken:
		return notPayable(payment.payee, "it is the zero address or a token's contract")
	case payment.payee == payment.from && isNative:
		return notPayable(payment.payee, "the network takes no transfer of TRX to oneself")
	case payment.amount.IsZero():
		return fault.New(
			fault.Invalid, "amount_too_small", "the order pays %s nothing", order.Outputs[0].To,
		)
	case payment.stake == delegateContract && payment.amount.Less(chain.Units(minDelegation)):
		return fault.New(
			fault.Invalid, "amount_too_small", "a delegation takes a stake of at least %d sun", minDelegation,
		)
	case order.SubtractFee && (!isNative || payment.stake != 0):
		return fault.New(
			fault.Invalid, "subtract_fee_invalid", "the network fee can be taken out of %s only",
			d.native.Symbol,
		)
	}

	if sun, fits := payment.amount.Uint64(); isNative && (!fits || sun > maxSun) {
		return fault.New(
			fault.State, "insufficient_funds", "%s base units of %s are more than there are",
			payment.amount, payment.asset.Symbol,
		)
	}

	return nil
}

// maxSun bounds amounts of TRX, in sun: transactions hold them in 63 bits.
const maxSun = 1 << 62

const codeNotPayable = "destination_not_payable"

func notPayable(to address, reason string) error {
	return fault.New(fault.Invalid, codeNotPayable, "%s cannot be paid: %s", canonical(to), reason)
}

// draft returns the transaction of a payment with a fee limit in sun, without reference block and times.
func (p paymentParams) draft(feeLimit uint64) *transaction {
	tx := &transaction{
		refBytes:   make([]byte, 2),
		refHash:    make([]byte, 8),
		expiration: draftTime,
		timestamp:  draftTime,
		owner:      p.from,
		permission: p.permission,
		feeLimit:   int64(feeLimit),
	}

	if p.contract != nil {
		tx.kind, tx.to, tx.data = triggerContract, *p.contract, transferInput(p.payee, p.amount)
		return tx
	}

	sun, _ := p.amount.Uint64()
	tx.kind, tx.to, tx.amount = transferContract, p.payee, int64(sun)

	if p.stake != 0 {
		tx.kind = p.stake
	}

	return tx
}

// draftTime encodes to as many bytes as every time between 1971 and 2109, in milliseconds.
const draftTime = 1 << 41
