package tron

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Build returns an unsigned transfer of TRX, or an unsigned call of a token's transfer, at current prices. It
// refers to the newest solidified block, which no fork can undo, and expires Config.Validity after the newest
// block. No two transactions of this process have the same time, so equal payments are two transactions.
//
// Where several nodes are configured it is what two of them lead to, and a refusal is that of two. While one alone
// answers there is none: it could have the payment fail, or cost more than it may.
//
// The fee limit of a call is seven eighths of what Order.MaxFee allows, or five quarters of its energy cost as far as
// that allows them: only what is used is burnt. A call that the limit does not cover moves nothing and burns it all.
//
// With SubtractFee the amount is reduced by the expected burn. Where stake or allowance cover it, one sun
// remains: no deduction at all would look like a forgotten one. If they are used up first, the network
// refuses the transaction and it is rebuilt after its expiration.
func (d *driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	payment, err := d.paymentOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	planned, _, err := askTwo(
		ctx, d, "a transaction of "+string(order.From.Address),
		func(ctx context.Context, node *endpoint) (draft, error) {
			return d.draft(ctx, node, order, payment)
		},
		d.sharedDraft,
	)
	if err != nil {
		return chain.Unsigned{}, err
	}

	if latest := d.now().Add(maxAhead); !d.hasSeveral() && latest.Before(planned.base) {
		planned.base = latest
	}

	return d.unsigned(order, payment, planned), nil
}

// draft is what the answers of a node make of an order.
type draft struct {
	amount chain.Amount // of the output, in base units
	limit  uint64       // of the fee, in sun
	maxFee chain.Amount // sun
	final  chain.Ref    // the block that the transaction refers to
	base   time.Time    // from which on it is valid: the newest block's
}

// maxAhead is how far the newest block of a node that answers alone may be ahead of the clock before a transaction's
// expiration follows the clock: the network takes none that expires a day ahead, and until then nothing replaces it.
const maxAhead = time.Hour

// draft returns the draft of an order by what one node says. A sender that does not hold amount and fee is
// fault.State (insufficient_funds).
func (d *driver) draft(
	ctx context.Context,
	node *endpoint,
	order chain.Order,
	payment paymentParams,
) (planned draft, err error) {
	head, err := node.head(ctx)
	if err != nil {
		return draft{}, err
	}

	if !isLowerHex(head.Final.Hash, 64) {
		return draft{}, node.Garbled("it has no solidified block")
	}

	quote, err := d.quote(ctx, node, payment)
	if err != nil {
		return draft{}, err
	}

	planned = draft{amount: payment.amount, final: head.Final, base: head.Tip.Time}

	if planned.limit, planned.maxFee, err = quote.feeLimit(order, payment); err != nil {
		return draft{}, err
	}

	if order.SubtractFee {
		if planned.amount, err = quote.amountAfterFee(payment); err != nil {
			return draft{}, err
		}

		payment.amount = planned.amount
	}

	due := quote.bandwidthFee(bandwidthOf(payment.draft(planned.limit).encode())).Add(quote.energyFee())
	if payment.contract == nil && payment.stake == 0 {
		due = due.Add(payment.amount)
	}

	if quote.balance.Less(due) {
		return draft{}, insufficientFunds(payment.from, quote.balance, d.native)
	}

	return planned, nil
}

// sharedDraft returns the draft that two nodes lead to; ok is false where they lead to another one each. It refers to
// the earlier of two solidified blocks that both have. Its time is between those of the nodes, and as near to the clock
// as that allows: neither a node that is behind nor one that makes a time up sets it.
func (d *driver) sharedDraft(ctx context.Context, a, b word[draft]) (shared draft, ok bool) {
	if b.value.final.Height < a.value.final.Height {
		a, b = b, a
	}

	if a.value.amount != b.value.amount || a.value.limit != b.value.limit ||
		a.value.maxFee != b.value.maxFee {
		return draft{}, false
	}

	if a.value.final.Hash != b.value.final.Hash {
		ref, err := b.node.refAt(ctx, a.value.final.Height)
		if err != nil || ref.Hash != a.value.final.Hash {
			return draft{}, false
		}
	}

	earlier, later := a.value.base, b.value.base
	if later.Before(earlier) {
		earlier, later = later, earlier
	}

	shared = a.value
	shared.base = earlier

	if now := d.now(); earlier.Before(now) {
		shared.base = now
		if later.Before(now) {
			shared.base = later
		}
	}

	return shared, true
}

// unsigned returns the unsigned transaction of a draft.
func (d *driver) unsigned(order chain.Order, payment paymentParams, planned draft) chain.Unsigned {
	payment.amount = planned.amount

	tx := payment.draft(planned.limit)
	id, _ := hex.DecodeString(planned.final.Hash) // 32 bytes since it was read
	tx.refBytes, tx.refHash = id[6:8], id[8:16]
	tx.timestamp, tx.expiration = d.timestamp(), planned.base.Add(d.validity).UnixMilli()

	raw := tx.encode()
	digest := txID(raw)

	out := order.Outputs[0]
	out.To, out.Amount = canonical(payment.payee), planned.amount

	return chain.Unsigned{
		Raw:      raw,
		Payloads: []chain.Payload{{Key: order.From.Key, Data: digest[:]}},
		MaxFee:   planned.maxFee,
		Outputs:  []chain.Output{out},
	}
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

	// An eighth is left for bytes that are made again once these have expired.
	chosen := chaindata.Max(
		chaindata.Min(q.energyFeeLimit(), highest),
		highest.Share(chain.Units(7), chain.Units(8)),
	)
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
