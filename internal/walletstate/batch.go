package walletstate

import (
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Batchable reports whether the transaction may be batched: it is an unsigned payout of one output.
func Batchable(t wallet.Transaction) bool {
	o := t.Order

	return t.State == wallet.Queued && t.Kind == wallet.Payout && t.BatchedBy == "" &&
		len(t.BatchMembers) == 0 &&
		len(o.Outputs) == 1 &&
		o.FeePayer == nil &&
		!o.SubtractFee &&
		o.Nonce == 0 &&
		len(o.Coins) == 0 &&
		o.Replaces == nil
}

// BatchableWith reports whether two transactions may be batched: both are Batchable, of one owner and wallet, and
// pay the same asset.
func BatchableWith(t wallet.Transaction, other wallet.Transaction) bool {
	return Batchable(t) && Batchable(other) && t.ID != other.ID && t.Network == other.Network &&
		t.Owner == other.Owner && t.Order.From == other.Order.From &&
		t.Order.Outputs[0].AssetID == other.Order.Outputs[0].AssetID
}

// Merge adds others, oldest first, to a queued payout as its batch members: its order pays its own output and
// then theirs. The batch's maximum fee is the lowest of their maximum fees times their number, so that no
// share exceeds the maximum of its payout. An illegal member is fault.State.
func Merge(t *wallet.Transaction, others []wallet.Transaction) error {
	outputs, ids, most := slices.Clone(t.Order.Outputs), []string(nil), t.Order.MaxFee
	for _, other := range others {
		if !BatchableWith(other, *t) || slices.Contains(ids, other.ID) {
			return refuse(t, "carry "+other.ID+", which is "+string(other.State))
		}

		outputs = append(outputs, other.Order.Outputs...)
		ids = append(ids, other.ID)
		most = chaindata.Min(most, other.Order.MaxFee)
	}

	if len(ids) == 0 {
		return refuse(t, "carry nothing")
	}

	t.Order.Outputs, t.Order.MaxFee, t.BatchMembers = outputs, most.Mul(uint64(len(outputs))), ids

	return nil
}

// JoinBatch sets a batch member to the state of its carrier: from Queued with the carrier's first bytes, and
// then with each of the carrier's moves. Any other transaction is fault.State.
func JoinBatch(t *wallet.Transaction, carrier wallet.Transaction) error {
	joinsNow := t.BatchedBy == "" && t.State == wallet.Queued && carrier.State == wallet.Signed
	if batchIndex(carrier, t.ID) < 1 || !joinsNow && t.BatchedBy != carrier.ID {
		return refuse(t, "go with "+carrier.ID)
	}

	t.BatchedBy, t.DueAt = carrier.ID, time.Time{}
	t.State, t.Failure, t.Conflict = carrier.State, carrier.Failure, carrier.Conflict
	t.Nonce, t.TxHash, t.Block = carrier.Nonce, carrier.TxHash, carrier.Block
	t.Waits, t.WaitingSince = carrier.Waits, carrier.WaitingSince
	t.Fee, t.Transfers = share(carrier, carrier.Fee, t.ID), ownTransfers(carrier, t.ID)

	return nil
}

// DeliveredTo returns the amount that a transaction in a block brought to the destination of one of its
// outputs. It is the net of the block's transfers, in base units of the output's asset. If several outputs of
// a batch pay one destination, they receive their amounts in their order, and the last one gets any excess.
// It is 0 for an index without an output.
func DeliveredTo(t wallet.Transaction, index int) chain.Amount {
	if index < 0 || index >= len(t.Order.Outputs) {
		return chain.Amount{}
	}

	var came, gone chain.Amount

	own := t.Order.Outputs[index]
	for _, m := range t.Transfers {
		switch {
		case m.AssetID != own.AssetID || m.From == m.To:
		case m.To == own.To:
			came, _ = came.AddOK(m.Amount)
		case m.From == own.To:
			gone, _ = gone.AddOK(m.Amount)
		}
	}

	left := came.SubFloor(gone)

	for i, o := range t.Order.Outputs {
		switch {
		case o.To != own.To || o.AssetID != own.AssetID:
		case i < index:
			left = left.SubFloor(o.Amount)
		case i > index:
			return chaindata.Min(left, own.Amount)
		}
	}

	return left
}

// ownTransfers returns the amount that a batch member's destination received, as one transfer; nil if that is
// 0.
func ownTransfers(carrier wallet.Transaction, transactionID string) []chain.Transfer {
	index := batchIndex(carrier, transactionID)

	amount := DeliveredTo(carrier, index)
	if amount.IsZero() {
		return nil
	}

	own := carrier.Order.Outputs[index]

	return []chain.Transfer{{
		TxHash:  carrier.TxHash,
		From:    carrier.Order.From.Address,
		To:      own.To,
		AssetID: own.AssetID,
		Amount:  amount,
	}}
}

// batchIndex returns the index of a payout in the batch: 0 for the carrier, then its members; -1 for any
// other.
func batchIndex(t wallet.Transaction, transactionID string) int {
	if transactionID == t.ID {
		return 0
	}

	if i := slices.Index(t.BatchMembers, transactionID); i >= 0 {
		return 1 + i
	}

	return -1
}

// share returns the share of a network fee (base units of the native coin) for the transaction or a batch
// member. Shares are equal, rounded down. The oldest bear the remainder, one base unit each, so that the
// shares add up to the fee.
func share(t wallet.Transaction, fee chain.Amount, transactionID string) chain.Amount {
	payouts := uint64(1 + len(t.BatchMembers))
	part := fee.Share(chain.Units(1), chain.Units(payouts))
	remainder := fee.Sub(part.Mul(payouts))

	if chain.Units(uint64(batchIndex(t, transactionID))).Less(remainder) {
		return part.Add(chain.Units(1))
	}

	return part
}

// OwnFee returns the share of the network fee of this transaction's own object, in base units of the
// native coin: Fee, less the shares of its batch members.
func OwnFee(t wallet.Transaction) chain.Amount { return share(t, t.Fee, t.ID) }

// OwnOutputs returns the outputs for the transaction's own object, without those of its batch members.
func OwnOutputs(t wallet.Transaction) []chain.Output {
	if len(t.BatchMembers) > 0 {
		return t.Order.Outputs[:1]
	}

	return t.Order.Outputs
}

// BatchShare returns the outputs of an attempt for the transaction or a batch member, and the maximum of its
// share of the network fee. The share is in base units of the native coin. Outputs are nil for any other id.
func BatchShare(t wallet.Transaction,
	a wallet.Attempt,
	transactionID string,
) (outputs []chain.Output, maxFee chain.Amount) {
	i := batchIndex(t, transactionID)
	switch {
	case i < 0 || len(t.BatchMembers) > 0 && i >= len(a.Signed.Outputs):
		return nil, chain.Amount{}
	case len(t.BatchMembers) == 0:
		return a.Signed.Outputs, a.Signed.MaxFee
	}

	return a.Signed.Outputs[i : i+1], share(t, a.Signed.MaxFee, transactionID)
}
