package sim

import (
	"context"
	"strconv"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// EstimateFee returns one and a half of the order's fee at the current price, in base units of the native
// coin.
func (w *Windows) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	if err := w.call(ctx, MethodEstimateFee); err != nil {
		return chain.Amount{}, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	tx, err := w.ledger.transactionOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	return w.suggestedMaxFee(tx), nil
}

func (w *Windows) suggestedMaxFee(tx *transaction) chain.Amount {
	return chain.Units(w.price + (w.price+1)/2).Mul(tx.gas())
}

// Build returns the unsigned transaction of an order, which refers to the node's tip and is valid for the
// window from there. It offers five quarters of the price, or what Order.MaxFee allows of that above the
// price. With SubtractFee it pays exactly what it offers.
func (w *Windows) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	if err := w.call(ctx, MethodBuild); err != nil {
		return chain.Unsigned{}, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	tx, err := w.ledger.transactionOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	if order.Replaces != nil && order.DurableNonce == nil {
		return chain.Unsigned{}, fault.New(
			fault.Unsupported, "replacement_unsupported", "nothing displaces a transaction on network %s",
			w.network.Slug,
		)
	}

	if err := w.setPrices(tx, order); err != nil {
		return chain.Unsigned{}, err
	}

	if err := w.ledger.checkFunds(tx, w.nodeTip()); err != nil {
		return chain.Unsigned{}, err
	}

	if w.setWindow(tx, w.nodeTip()); order.DurableNonce != nil {
		if err := w.setNonce(tx, *order.DurableNonce); err != nil {
			return chain.Unsigned{}, err
		}
	}

	digest := tx.digest()

	return chain.Unsigned{
		Raw:      tx.unsigned(),
		Payloads: []chain.Payload{{Key: order.From.Key, Data: digest[:]}},
		MaxFee:   tx.maxFee(),
		Outputs:  w.ledger.outputs(tx),
	}, nil
}

// setPrices sets what a transaction offers for its gas, and takes its fee from the amount where the order says so.
func (w *Windows) setPrices(tx *transaction, order chain.Order) error {
	// Rounded down, so that the price times the gas stays within MaxFee.
	tx.maxPrice = w.price + (w.price+3)/4
	if allowed, fits := order.MaxFee.Share(chain.Units(1), chain.Units(tx.gas())).Uint64(); fits {
		tx.maxPrice = min(tx.maxPrice, allowed)
	}

	if tx.maxPrice < w.price {
		return fault.New(
			fault.Limited, "fee_above_maximum",
			"the transaction costs %s now, more than the %s that it may cost",
			chain.Units(w.price).Mul(tx.gas()), order.MaxFee,
		)
	}

	if err := w.raisePrice(tx, order); err != nil {
		return err
	}

	if order.SubtractFee {
		tx.priority = tx.maxPrice
		if err := subtractFee(tx); err != nil {
			return err
		}
	}

	return nil
}

// Assemble adds the signature to an unsigned transaction. It returns fault.Invalid with code
// signature_invalid when signature, key, sender or order do not match.
func (w *Windows) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	// The reference is in the place of the nonce, which orders of this network do not have.
	tx, err := decodeUnsigned(unsigned.Raw)
	if err != nil {
		return chain.Signed{}, err
	}

	order.Nonce = tx.nonce
	signed, err := w.ledger.Assemble(order, unsigned, keys, signatures)
	signed.Nonce = 0

	if signed.DurableNonce = order.DurableNonce; err == nil && tx.isDurable() != (order.DurableNonce != nil) {
		err = fault.New(
			fault.Invalid,
			"signature_invalid",
			"the transaction uses no durable nonce, or one that nobody ordered",
		)
	}

	return signed, err
}

// Decode implements chain.Decoder: nothing is used up by a transaction that only expires, and a nonce by any other.
func (w *Windows) Decode(raw []byte) (chain.Decoded, error) {
	decoded, err := w.ledger.Decode(raw)
	decoded.Spends = nil

	if tx, invalid := decodeUnsigned(raw); invalid == nil && tx.isDurable() {
		value := strconv.FormatUint(tx.nonce&(1<<nonceBits-1), 10)
		decoded.Spends = []chain.Spend{{Sender: tx.nonceAccount(), Value: value}}
	}

	return decoded, err
}

// Broadcast puts a transaction into the pool. In addition to the errors of chain.Sender, one outside of
// its window is fault.State with code transaction_expired, which is no proof of expiry: the node that
// has the block that it refers to may be another.
func (w *Windows) Broadcast(ctx context.Context, signed chain.Signed) error {
	if err := w.call(ctx, MethodBroadcast); err != nil {
		return err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	return w.lostResponse(w.receive(signed.Raw))
}

// receive validates signed bytes and adds their transaction to the pool. A known one is accepted.
func (w *Windows) receive(raw []byte) error {
	tx, err := decode(raw)
	if err != nil {
		return err
	}

	if err := w.ledger.checkStateless(tx); err != nil {
		return err
	}

	hash, tip := tx.hash(), w.tipRef()
	if w.receipts[hash] != nil || w.pool[hash] != nil {
		return nil
	}

	if !w.withinWindow(tx, tip.Height+1, tip.Time) {
		return fault.New(
			fault.State,
			"transaction_expired",
			"the transaction refers to no block of this branch, or could be included up to block %d or %s only",
			tx.validToHeight,
			tx.validToTime(),
		)
	}

	if !w.ledger.affordable(tx, tip.Height) {
		return fault.New(
			fault.Invalid, "chain:insufficient_funds",
			"%s holds too little %s for the transaction and its fee of up to %s",
			tx.from.address(), w.native.Symbol, tx.maxFee(),
		)
	}

	w.enqueue(tx)

	return nil
}

// Status returns the status of a transaction. One outside the canonical chain is TxDead when its window
// has ended at the final block.
func (w *Windows) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	if err := w.call(ctx, MethodStatus); err != nil {
		return chain.TxStatus{}, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	final := w.finalHeight()
	if included := w.receipts[signed.TxHash]; included != nil && included.height <= w.nodeTip() {
		return chain.TxStatus{
			State:     chain.TxIncluded,
			Block:     w.headers[included.height].Ref,
			Final:     included.height <= final,
			Reverted:  included.reverted,
			Fee:       included.fee,
			Transfers: w.transfers(included),
		}, nil
	}

	if n := signed.DurableNonce; n != nil && w.nonceUsed(*n) {
		return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}, nil
	}

	finalRef := w.headers[final].Ref
	if w.nonceRefused(signed) || (signed.ValidToHeight != 0 && finalRef.Height > signed.ValidToHeight) ||
		(!signed.ValidTo.IsZero() && finalRef.Time.After(signed.ValidTo)) {
		return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonExpired}, nil
	}

	if w.pool[signed.TxHash] != nil {
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	return chain.TxStatus{State: chain.TxUnknown}, nil
}
