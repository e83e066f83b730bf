package tron

import (
	"context"
	"encoding/hex"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Build makes a transfer of TRX or a call of a token's transfer at current prices. It refers to the
// newest solidified block, which no fork can undo, and runs out Config.Validity after the newest
// block. A call's fee limit has room for a quarter more energy than it takes now, or for what
// Order.MaxFee leaves of that while it still covers what it takes now.
//
// With SubtractFee the fee is what the transfer will burn as things are. Where stake or allowance
// cover it, that is nothing, and one sun stays behind: a fee that is not taken out at all cannot be
// told from one that was forgotten. Should stake or allowance be used up first, the network does
// not take the transaction, and it is made anew after it ran out.
//
// Two transactions that this process builds never have the same time, so that two equal payments
// are two transactions.
func (d *Driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	payment, err := d.paymentOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var u chain.Unsigned

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		head, err := e.head(ctx)
		if err != nil {
			return err
		}

		quote, err := d.quote(ctx, e, payment)
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

func (d *Driver) build(order chain.Order, payment paymentParams, quote feeQuote, head chain.Head) (chain.Unsigned, error) {
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
	if payment.contract == nil {
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

// feeLimit chooses the fee limit: at most what Order.MaxFee leaves beside the bandwidth, at least what
// the call takes now.
func (q feeQuote) feeLimit(order chain.Order, payment paymentParams) (limit uint64, maxFee chain.Amount, err error) {
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

	highest := chain.Min(chain.Units(q.params.feeLimit), order.MaxFee.SubFloor(most))
	if highest.Less(floor) || order.MaxFee.Less(most) {
		return 0, most, tooDear(most.Add(floor))
	}

	chosen := chain.Min(q.energyFeeLimit(), highest)
	limit, _ = chosen.Uint64()

	return limit, most.Add(chosen), nil
}

// amountAfterFee is what a transfer of TRX can pay when its fee comes out of its amount. The fee is that
// of the smaller amount's size; where that is a byte shorter just because of it, the price of that
// byte stays behind.
func (q feeQuote) amountAfterFee(payment paymentParams) (chain.Amount, error) {
	fee := chain.Max(q.bandwidthFee(bandwidthOf(payment.draft(0).encode())), chain.Units(1))
	if payment.amount.Cmp(fee) <= 0 {
		return payment.amount, fault.New(
			fault.State, "insufficient_funds",
			"the %s sun to send do not exceed the network fee of %s",
			payment.amount, fee,
		)
	}

	smaller := payment

	smaller.amount = payment.amount.Sub(fee)
	if again := q.bandwidthFee(bandwidthOf(smaller.draft(0).encode())); again.Less(fee) && !again.IsZero() {
		exact := smaller

		exact.amount = payment.amount.Sub(again)
		if q.bandwidthFee(bandwidthOf(exact.draft(0).encode())) == again {
			return exact.amount, nil
		}
	}

	return smaller.amount, nil
}

// Assemble puts the signature in and computes the hash. The signature must have been made over
// these bytes by the one key given, and the key be that of Order.From; else fault.Invalid
// (signature_invalid).
func (d *Driver) Assemble(
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

	signer, err := d.DeriveAddress(keys[0])
	if err != nil {
		return chain.Signed{}, err
	}

	from, err := parseAddress(string(order.From.Address))
	if err != nil {
		return chain.Signed{}, err
	}

	if signer != canonical(from) || tx.owner != from {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the key is that of %s and the transaction is sent from %s, the order from %s",
			signer, canonical(tx.owner), order.From.Address,
		)
	}

	signature := append([]byte(nil), signatures[0]...)
	if signature[64] < recoveryOffset {
		signature[64] += recoveryOffset
	}

	raw := encodeSigned(unsigned.Raw, signature)
	// Recovered as the network does it: from these bytes alone.
	if _, _, sender, err := decodeSigned(raw); err != nil || sender != from {
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
