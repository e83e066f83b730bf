package wallet

import (
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// Batchable reports whether the transaction may be batched: it is an unsigned payout of one output.
func (t Transaction) Batchable() bool {
	o := t.Order

	return t.State == Queued && t.Kind == Payout && t.BatchedBy == "" && len(t.BatchMembers) == 0 &&
		len(o.Outputs) == 1 && o.FeePayer == nil && !o.SubtractFee && o.Nonce == 0 && len(o.Coins) == 0 &&
		o.Replaces == nil
}

// BatchableWith reports whether two transactions may be batched: both are Batchable, of one owner and wallet, and
// pay the same asset.
func (t Transaction) BatchableWith(other Transaction) bool {
	return t.Batchable() && other.Batchable() && t.ID != other.ID && t.Network == other.Network &&
		t.Owner == other.Owner && t.Order.From == other.Order.From &&
		t.Order.Outputs[0].AssetID == other.Order.Outputs[0].AssetID
}

// Merge adds others, oldest first, to a queued payout as its batch members: its order pays its own output
// and then theirs. The batch's maximum fee is the lowest of theirs times their number, so that no share
// exceeds what its payout may cost. An illegal member is fault.State.
func (t *Transaction) Merge(others []Transaction) error {
	outputs, ids, most := slices.Clone(t.Order.Outputs), []string(nil), t.Order.MaxFee
	for _, other := range others {
		if !other.BatchableWith(*t) || slices.Contains(ids, other.ID) {
			return t.refuse("carry " + other.ID + ", which is " + string(other.State))
		}

		outputs = append(outputs, other.Order.Outputs...)
		ids = append(ids, other.ID)
		most = chain.Min(most, other.Order.MaxFee)
	}

	if len(ids) == 0 {
		return t.refuse("carry nothing")
	}

	t.Order.Outputs, t.Order.MaxFee, t.BatchMembers = outputs, most.Mul(uint64(len(outputs))), ids

	return nil
}

// JoinBatch sets a batch member to the state of its carrier: from Queued with the carrier's first bytes,
// and then with each of its moves. Any other transaction is fault.State.
func (t *Transaction) JoinBatch(carrier Transaction) error {
	joinsNow := t.BatchedBy == "" && t.State == Queued && carrier.State == Signed
	if carrier.batchIndex(t.ID) < 1 || !joinsNow && t.BatchedBy != carrier.ID {
		return t.refuse("go with " + carrier.ID)
	}

	t.BatchedBy, t.DueAt = carrier.ID, time.Time{}
	t.State, t.Failure, t.Conflict = carrier.State, carrier.Failure, carrier.Conflict
	t.Nonce, t.TxHash, t.Block = carrier.Nonce, carrier.TxHash, carrier.Block
	t.Fee = carrier.share(carrier.Fee, t.ID)

	return nil
}

// batchIndex returns the index of a payout in the batch: 0 for its own, then its members; -1 for none.
func (t Transaction) batchIndex(transactionID string) int {
	if transactionID == t.ID {
		return 0
	}

	if i := slices.Index(t.BatchMembers, transactionID); i >= 0 {
		return 1 + i
	}

	return -1
}

// share returns the share of a network fee (base units of the native coin) of the transaction or of a
// batch member. Shares are equal, rounded down; the oldest take the remainder, one base unit each, so that
// they add up to the fee.
func (t Transaction) share(fee chain.Amount, transactionID string) chain.Amount {
	payouts := uint64(1 + len(t.BatchMembers))
	part := fee.Share(chain.Units(1), chain.Units(payouts))
	remainder := fee.Sub(part.Mul(payouts))

	if chain.Units(uint64(t.batchIndex(transactionID))).Less(remainder) {
		return part.Add(chain.Units(1))
	}

	return part
}

// OwnFee returns the share of the network fee of this transaction's own object, in base units of the
// native coin: Fee, less the shares of its batch members.
func (t Transaction) OwnFee() chain.Amount { return t.share(t.Fee, t.ID) }

// OwnOutputs returns the outputs for the transaction's own object, without those of its batch members.
func (t Transaction) OwnOutputs() []chain.Output {
	if len(t.BatchMembers) > 0 {
		return t.Order.Outputs[:1]
	}

	return t.Order.Outputs
}

// BatchShare returns the outputs of an attempt for the transaction or a batch member, and the maximum of its
// share of the network fee (base units of the native coin). Outputs are nil for any other id.
func (t Transaction) BatchShare(
	a Attempt,
	transactionID string,
) (outputs []chain.Output, maxFee chain.Amount) {
	i := t.batchIndex(transactionID)
	switch {
	case i < 0 || len(t.BatchMembers) > 0 && i >= len(a.Signed.Outputs):
		return nil, chain.Amount{}
	case len(t.BatchMembers) == 0:
		return a.Signed.Outputs, a.Signed.MaxFee
	}

	return a.Signed.Outputs[i : i+1], t.share(a.Signed.MaxFee, transactionID)
}
