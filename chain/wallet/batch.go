package wallet

import (
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// Batchable reports whether the transaction may be paid together with others: an unsigned payout of
// one output.
func (t Transaction) Batchable() bool {
	o := t.Order

	return t.State == Queued && t.Kind == Payout && t.BatchedBy == "" && len(t.BatchMembers) == 0 &&
		len(o.Outputs) == 1 &&
		o.FeePayer == nil &&
		!o.SubtractFee &&
		o.Nonce == 0 &&
		len(o.Coins) == 0 &&
		o.Replaces == nil
}

// Joins reports whether the transaction may be paid together with another one: by the same wallet,
// in the same asset.
func (t Transaction) Joins(other Transaction) bool {
	return t.Batchable() && other.Batchable() && t.ID != other.ID && t.Network == other.Network &&
		t.Owner == other.Owner &&
		t.Order.From == other.Order.From &&
		t.Order.Outputs[0].AssetID == other.Order.Outputs[0].AssetID
}

// Merge has a queued payout carry others, oldest first: its order pays its own output and then
// theirs. The whole may cost as much as if each were allowed what the most frugal of them is, so
// that no share of the fee exceeds what its payout may cost.
func (t *Transaction) Merge(others []Transaction) error {
	outputs, ids, most := slices.Clone(t.Order.Outputs), []string(nil), t.Order.MaxFee
	for _, other := range others {
		if !other.Joins(*t) || slices.Contains(ids, other.ID) {
			return t.refuse("carry " + other.ID + ", which is " + string(other.State))
		}

		outputs, ids, most = append(
			outputs,
			other.Order.Outputs...), append(
			ids, other.ID,
		), chain.Min(
			most, other.Order.MaxFee,
		)
	}

	if len(ids) == 0 {
		return t.refuse("carry nothing")
	}

	t.Order.Outputs, t.Order.MaxFee, t.BatchMembers = outputs, most.Mul(uint64(len(outputs))), ids

	return nil
}

// JoinBatch brings a transaction to where its carrier stands: from Queued with the carrier's first
// bytes, and from then on wherever that one goes.
func (t *Transaction) JoinBatch(carrier Transaction) error {
	boards := t.BatchedBy == "" && t.State == Queued && carrier.State == Signed
	if carrier.batchIndex(t.ID) < 1 || !boards && t.BatchedBy != carrier.ID {
		return t.refuse("go with " + carrier.ID)
	}

	t.BatchedBy, t.DueAt = carrier.ID, time.Time{}
	t.State, t.Failure = carrier.State, carrier.Failure
	t.Nonce, t.TxHash, t.Block = carrier.Nonce, carrier.TxHash, carrier.Block
	t.Fee = carrier.share(carrier.Fee, t.ID)

	return nil
}

// place returns which of the payouts of a transaction is that of a row: 0 for its own, then those
// that it carries; -1 for none.
func (t Transaction) batchIndex(transactionID string) int {
	if transactionID == t.ID {
		return 0
	}

	if i := slices.Index(t.BatchMembers, transactionID); i >= 0 {
		return 1 + i
	}

	return -1
}

// share returns what of a network fee falls to the transaction itself or to one that it carries:
// equal parts rounded down, of which the oldest take what is left over, one base unit each, so that
// the shares add up to the fee.
func (t Transaction) share(fee chain.Amount, transactionID string) chain.Amount {
	n := chain.Units(uint64(1 + len(t.BatchMembers)))

	part := fee.Share(chain.Units(1), n)
	if rest := fee.Sub(
		part.Mul(uint64(1 + len(t.BatchMembers))),
	); chain.Units(uint64(t.batchIndex(transactionID))).
		Less(rest) {
		return part.Add(chain.Units(1))
	}

	return part
}

// OwnFee is what of the network fee falls to the object of this transaction: Fee, less the shares
// of those that it carries.
func (t Transaction) OwnFee() chain.Amount { return t.share(t.Fee, t.ID) }

// OwnOutputs are what the transaction must pay for its own object, those that it carries left out.
func (t Transaction) OwnOutputs() []chain.Output {
	if len(t.BatchMembers) > 0 {
		return t.Order.Outputs[:1]
	}

	return t.Order.Outputs
}

// Part returns what an attempt pays for the transaction itself or for one that it carries, and the
// most that its share of the network fee comes to. Outputs are nil for any other.
func (t Transaction) Part(a Attempt, transactionID string) (outputs []chain.Output, maxFee chain.Amount) {
	i := t.batchIndex(transactionID)
	switch {
	case i < 0 || len(t.BatchMembers) > 0 && i >= len(a.Signed.Outputs):
		return nil, chain.Amount{}
	case len(t.BatchMembers) == 0:
		return a.Signed.Outputs, a.Signed.MaxFee
	}

	return a.Signed.Outputs[i : i+1], t.share(a.Signed.MaxFee, transactionID)
}
