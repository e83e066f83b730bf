package evm

import (
	"context"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Build makes a type-2 transaction at current fees: it offers twice the base fee plus the suggested
// priority fee, or what Order.MaxFee leaves of that while it still covers the current fees.
//
// With SubtractFee the fee is exact: 21,000 gas, and a priority fee equal to the maximum, so that all of
// it is taken whatever the base fee is then. A destination that runs code is refused there. On rollups that
// charge for publishing, the unused part of what was set aside for it stays at the address.
//
// A replacement offers at least an eighth more than what it replaces, for both fees (nodes ask for a tenth).
func (d *Driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	s, err := d.spendOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	least, err := d.displacing(order, s)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var u chain.Unsigned

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		v, err := d.survey(ctx, e, s)
		if err != nil {
			return err
		}

		u, err = d.build(order, s, v, least)

		return err
	})

	return u, err
}

func (d *Driver) build(order chain.Order, s spend, v survey, least pricePair) (chain.Unsigned, error) {
	if order.SubtractFee && v.hasCode && v.gas > plainGas {
		return chain.Unsigned{}, notPayable(nil, canonical(s.payee))
	}

	offer, err := offered(order, v, least)
	if err != nil {
		return chain.Unsigned{}, err
	}

	maxFee := offer.cap.Mul(v.gas).Add(v.l1)

	out := order.Outputs[0]
	if order.SubtractFee {
		if out.Amount.Cmp(maxFee) <= 0 {
			return chain.Unsigned{}, fault.New(fault.State, "insufficient_funds",
				"the %s base units to send do not exceed the network fee of %s", out.Amount, maxFee)
		}

		out.Amount = out.Amount.Sub(maxFee)
		s.value = out.Amount
	}

	if due, ok := s.value.AddOK(maxFee); !ok || v.balance.Less(due) {
		s.asset = d.native
		return chain.Unsigned{}, d.unfunded(s, v.balance)
	}

	out.To = canonical(s.payee)
	raw := (&envelope{
		chainID: d.network.ChainID,
		nonce:   order.Nonce,
		tip:     offer.tip,
		cap:     offer.cap,
		gas:     v.gas,
		to:      s.to,
		value:   s.value,
		data:    s.data,
	}).encode()
	hash := digest(raw)

	return chain.Unsigned{
		Raw:      raw,
		Payloads: []chain.Payload{{Key: order.From.Key, Data: hash[:]}},
		MaxFee:   maxFee,
		Outputs:  []chain.Output{out},
	}, nil
}

// pricePair is an offer: wei per gas, at most and for priority.
type pricePair struct{ cap, tip chain.Amount }

// displacing returns the least offer that displaces what the order replaces: an eighth more of both,
// rounded up.
func (d *Driver) displacing(order chain.Order, s spend) (pricePair, error) {
	if order.Replaces == nil {
		return pricePair{}, nil
	}

	tx, from, err := d.signedEnvelope(order.Replaces.Raw)
	if err != nil {
		return pricePair{}, err
	}

	if from != s.from || tx.Nonce() != order.Nonce {
		return pricePair{}, fault.New(
			fault.Invalid, "replacement_invalid",
			"transaction %s has another sender or nonce than the order that is to replace it",
			order.Replaces.TxHash,
		)
	}

	feeCap, err := chain.AmountFromBig(tx.GasFeeCap())
	if err != nil || maxPrice.Less(feeCap) {
		return pricePair{}, malformed(err)
	}

	tip, err := chain.AmountFromBig(tx.GasTipCap())
	if err != nil || maxPrice.Less(tip) {
		return pricePair{}, malformed(err)
	}

	return pricePair{cap: feeCap.Add(eighthUp(feeCap)), tip: tip.Add(eighthUp(tip))}, nil
}

func eighthUp(a chain.Amount) chain.Amount {
	return a.RoundUpTo(chain.Units(8)).Share(chain.Units(1), chain.Units(8))
}

// offered chooses the prices: at least what the network asks for now and what displaces an earlier
// attempt, at most what Order.MaxFee pays for.
func offered(order chain.Order, v survey, least pricePair) (pricePair, error) {
	tip := chain.Max(v.tip, least.tip)
	floor := chain.Max(chain.Max(v.base.Add(v.tip), least.cap), tip)

	want := v.ceiling()
	if order.SubtractFee {
		want = v.exact()
	}

	want = chain.Max(want, floor)
	// Rounded down: price × gas stays within the maximum.
	paid := order.MaxFee.SubFloor(v.l1).Share(chain.Units(1), chain.Units(v.gas))
	if paid.Less(floor) || order.MaxFee.Less(v.l1) {
		return pricePair{}, fault.New(
			fault.Limited, "fee_above_maximum",
			"the transaction costs up to %s wei now, more than the %s that it may cost",
			floor.Mul(v.gas).Add(v.l1), order.MaxFee,
		)
	}

	offer := pricePair{cap: chain.Min(want, paid), tip: tip}
	if order.SubtractFee {
		offer.tip = offer.cap
	}

	return offer, nil
}

// Assemble puts the signature in and computes the hash. The signature must have been made over these
// bytes by the one key given, and the key be that of Order.From; else fault.Invalid (signature_invalid).
func (d *Driver) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	t, err := decodeEnvelope(unsigned.Raw)
	if err != nil {
		return chain.Signed{}, err
	}

	if t.chainID != d.network.ChainID || t.nonce != order.Nonce {
		return chain.Signed{}, fault.New(
			fault.Invalid, "transaction_foreign",
			"the transaction has chain id %d and nonce %d, the order is for network %s and nonce %d",
			t.chainID, t.nonce, d.network.Slug, order.Nonce,
		)
	}

	if len(keys) != 1 || len(signatures) != 1 || len(signatures[0]) != crypto.SignatureLength {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the transaction takes one key and one signature of %d bytes",
			crypto.SignatureLength,
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

	if signer != canonical(from) {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid", "the key is that of %s, the order is sent from %s",
			signer, order.From.Address,
		)
	}

	tx, err := t.sign(signatures[0])
	if err != nil {
		return chain.Signed{}, fault.Wrap(
			err, fault.Invalid, "signature_invalid",
			"the signature does not fit into the transaction",
		)
	}

	raw, err := tx.MarshalBinary()
	if err != nil {
		return chain.Signed{}, malformed(err)
	}
	// Recovered as the network does it: from these bytes alone, s in the lower half.
	if _, sender, err := d.signedEnvelope(raw); err != nil || sender != from {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the signature is not one of %s over this transaction",
			signer,
		)
	}

	return chain.Signed{
		TxHash:  tx.Hash().Hex(),
		Raw:     raw,
		Nonce:   t.nonce,
		MaxFee:  unsigned.MaxFee,
		Outputs: unsigned.Outputs,
		From:    signer,
	}, nil
}
