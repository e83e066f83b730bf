package tron

import (
	"context"
	"encoding/hex"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Build returns an unsigned transfer of TRX, or an unsigned call of a token's transfer, at current prices. It
// refers to the newest solidified block, which no fork can undo, and expires Config.Validity after the newest
// block. No two transactions of this process have the same time, so equal payments are two transactions.
//
// The fee limit of a call is five quarters of its energy cost, or what Order.MaxFee allows of that above the
// cost itself.
//
// With SubtractFee the amount is reduced by the expected burn. Where stake or allowance cover it, one sun
// remains: no deduction at all would look like a forgotten one. If they are used up first, the network
// refuses the transaction and it is rebuilt after its expiration.
func (d *driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	payment, err := d.paymentOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var u chain.Unsigned

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		head, err := node.head(ctx)
		if err != nil {
			return err
		}

		quote, err := d.quote(ctx, node, payment)
		if err != nil {
			return err
		}

		u, err = d.build(order, payment, quote, head)

		return err
	})
	if err != nil {
		return chain.Unsigned{}, err
	}

	return u, nil
}

// build returns the unsigned transaction of a payment. A sender that does not hold amount and fee is
// fault.State (insufficient_funds).
func (d *driver) build(
	order chain.Order,
	payment paymentParams,
	quote feeQuote,
	head chain.Head,
) (chain.Unsigned, error) {
	limit, maxFee, err := quote.feeLimit(order, payment)
	if err != nil {
		return chain.Unsigned{}, err
	}

	out := order.Outputs[0]
	if order.SubtractFee {
		if out.Amount, err = quote.amountAfterFee(payment); err != nil {
			return chain.Unsigned{}, err
		}

		payment.amount = out.Amount
	}

	tx := payment.draft(limit)
	fee := quote.bandwidthFee(bandwidthOf(tx.encode())).Add(quote.energyFee())

	due := fee
	if payment.contract == nil && payment.stake == 0 {
		due = due.Add(payment.amount)
	}

	if quote.balance.Less(due) {
		return chain.Unsigned{}, insufficientFunds(payment.from, quote.balance, d.native)
	}

	id, err := hex.DecodeString(head.Final.Hash)
	if err != nil || len(id) != 32 {
		return chain.Unsigned{}, fault.New(
			fault.Unavailable, "node_unavailable", "network %s has no solidified block",
			d.network.Slug,
		)
	}

	tx.refBytes, tx.refHash = id[6:8], id[8:16]
	tx.timestamp, tx.expiration = d.timestamp(), head.Tip.Time.Add(d.validity).UnixMilli()

	raw := tx.encode()
	digest := txID(raw)
	out.To = canonical(payment.payee)

	return chain.Unsigned{
		Raw:      raw,
		Payloads: []chain.Payload{{Key: order.From.Key, Data: digest[:]}},
		MaxFee:   maxFee,
		Outputs:  []chain.Output{out},
	}, nil
}

// feeLimit returns the fee limit of a call and the largest fee of the transaction, both in sun. The limit is
// at most what Order.MaxFee allows beside the bandwidth, and at least the current energy cost. A MaxFee below
// that is fault.Limited (fee_above_maximum).
func (q feeQuote) feeLimit(
	order chain.Order,
	payment paymentParams,
) (limit uint64, maxFee chain.Amount, err error) {
	tooDear := func(floor chain.Amount) error {
		return fault.New(
			fault.Limited, "fee_above_maximum",
			"the transaction may cost %s sun now, more than the %s that it may cost",
			floor, order.MaxFee,
		)
	}

	if payment.contract == nil {
		most := q.maxBandwidthFee(bandwidthOf(payment.draft(0).encode()))
		if order.MaxFee.Less(most) {
			return 0, most, tooDear(most)
		}

		return 0, most, nil
	}

	most := q.maxBandwidthFee(bandwidthOf(payment.draft(maxPrice).encode()))
	floor := q.energyCost()

	highest := chaindata.Min(chain.Units(q.params.feeLimit), order.MaxFee.SubFloor(most))
	if highest.Less(floor) || order.MaxFee.Less(most) {
		return 0, most, tooDear(most.Add(floor))
	}

	chosen := chaindata.Min(q.energyFeeLimit(), highest)
	limit, _ = chosen.Uint64()

	return limit, most.Add(chosen), nil
}

// amountAfterFee returns the amount of a TRX transfer that bears its own fee, in sun. The fee is that of the
// reduced amount's size. Where a smaller fee would need the larger size again, the larger fee is kept. An
// amount that does not exceed the fee is fault.State (insufficient_funds).
func (q feeQuote) amountAfterFee(payment paymentParams) (chain.Amount, error) {
	fee := chaindata.Max(q.bandwidthFee(bandwidthOf(payment.draft(0).encode())), chain.Units(1))
	if payment.amount.Cmp(fee) <= 0 {
		return payment.amount, fault.New(
			fault.State, "insufficient_funds",
			"the %s sun to send do not exceed the network fee of %s",
			payment.amount, fee,
		)
	}

	reduced := payment
	reduced.amount = payment.amount.Sub(fee)

	lowerFee := q.bandwidthFee(bandwidthOf(reduced.draft(0).encode()))
	if lowerFee.Less(fee) && !lowerFee.IsZero() {
		exact := reduced
		exact.amount = payment.amount.Sub(lowerFee)

		if q.bandwidthFee(bandwidthOf(exact.draft(0).encode())) == lowerFee {
			return exact.amount, nil
		}
	}

	return reduced.amount, nil
}

// Assemble returns the signed transaction with its hash. The signature must be one over these bytes by the
// one key, and the key that of Order.From. Otherwise it is fault.Invalid (signature_invalid).
func (d *driver) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	tx, ok := decodeTransaction(unsigned.Raw)
	if !ok {
		return chain.Signed{}, malformed("they are no transfer or call")
	}

	if len(keys) != 1 || len(signatures) != 1 || len(signatures[0]) != signatureLength {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the transaction takes one key and one signature of %d bytes",
			signatureLength,
		)
	}

	signer, err := d.checkSigner(order, tx, keys[0])
	if err != nil {
		return chain.Signed{}, err
	}

	signature := append([]byte(nil), signatures[0]...)
	if signature[64] < recoveryOffset {
		signature[64] += recoveryOffset
	}

	// The network recovers the sender from these bytes alone.
	raw := encodeSigned(unsigned.Raw, signature)
	if _, _, sender, err := decodeSigned(raw); err != nil || sender != tx.owner {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the signature is not one of %s over this transaction",
			signer,
		)
	}

	expiration, ok := millis(tx.expiration)
	if !ok {
		return chain.Signed{}, malformed("their expiration is beyond reason")
	}

	id := txID(unsigned.Raw)

	return chain.Signed{
		TxHash:  hex.EncodeToString(id[:]),
		Raw:     raw,
		MaxFee:  unsigned.MaxFee,
		Outputs: unsigned.Outputs,
		From:    signer,
		ValidTo: expiration,
	}, nil
}

// checkSigner returns the address of a key, which must be the sender of transaction and order.
func (d *driver) checkSigner(order chain.Order, tx *transaction, key chain.PublicKey) (chain.Address, error) {
	signer, err := d.DeriveAddress(key)
	if err != nil {
		return "", err
	}

	from, err := parseAddress(string(order.From.Address))
	if err != nil {
		return "", err
	}

	if signer != canonical(from) || tx.owner != from {
		return "", fault.New(
			fault.Invalid, "signature_invalid",
			"the key is that of %s and the transaction is sent from %s, the order from %s",
			signer, canonical(tx.owner), order.From.Address,
		)
	}

	return signer, nil
}
