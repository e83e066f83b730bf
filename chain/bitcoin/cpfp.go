package bitcoin

// Child pays for parent: a payment that pays the miner too little is spent, while it waits, by a
// transaction of ours that pays for both.

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

const (
	// maxPaymentShare is which part of a payment lifting it may cost at most: a tenth.
	maxPaymentShare = 10
	// maxClusterCount and maxFamilySize bound a waiting transaction with those that rest on it, or on
	// which it rests, ours left out: nodes take no more than 25 of them with 101,000 vB. Source:
	// Bitcoin Core, DEFAULT_ANCESTOR_LIMIT and its like.
	maxClusterCount     = 24
	maxClusterSize = 95_000
	// maxAncestorSpends bounds what is kept of the inputs of waiting ancestors, from which the death of the
	// child is proven.
	maxAncestorSpends = 500
	// maxEntrySize bounds the sizes that a node may say, so that rate × weight cannot overflow: no
	// pool has so many vB.
	maxEntrySize = 1e9
	// trucVersion is the version of transactions whose children have to be of it as well and small (BIP-431).
	trucVersion = 3
)

// LiftAfter returns Config.LiftAfter; on is false without Config.LiftMaxFee.
func (d *Driver) LiftAfter() (after time.Duration, on bool) {
	return d.config.LiftAfter, d.config.LiftMaxFee > 0
}

// Lift proposes the order that lifts a waiting coin at the current fee rate. What waiting
// transactions pay only nodes like Bitcoin Core say (getmempoolentry); btcd is fault.Unsupported
// (lift_unsupported).
func (d *Driver) Lift(
	ctx context.Context,
	coin chain.Coin,
	wallet chain.Party,
	coins []chain.Coin,
) (order chain.Order, ok bool, err error) {
	order = chain.Order{
		From:    wallet,
		Outputs: []chain.Output{{To: coin.Owner.Address, AssetID: d.native.ID, Amount: coin.Amount}},
		Lift:    &coin,
		Coins:   coins,
	}

	target, err := d.targetOf(order)
	if err != nil {
		return chain.Order{}, false, err
	}

	free, required, err := d.candidates(order)
	if err != nil {
		return chain.Order{}, false, err
	}

	var most int64

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		parent, err := e.parentEntry(ctx, order, required)
		if err != nil {
			return err
		}

		rates, err := d.readFeeRates(ctx, e)
		if err != nil {
			return err
		}

		bump := cpfpBump{
			maxFee:  int64(d.config.LiftMaxFee),
			rate:     rates.estimate,
			target:     target,
			parent:   parent,
			required: required,
			coins:    free,
		}

		var why string
		if most, why = bump.fee(); why != "" {
			return notBumpable(order, why)
		}

		return nil
	})
	if fault.Code(err) == codeNotBumpable {
		return chain.Order{}, false, nil
	}

	order.MaxFee, order.Coins = satoshiAmount(most), nil // chosen among the wallet's when it is signed

	return order, err == nil, err
}

// cpfpBump is all that decides whether a waiting payment is lifted.
type cpfpBump struct {
	maxFee  int64 // Config.LiftMaxFee
	rate     int64 // what miners take now
	target     coinTarget  // the payment, back to its address
	parent   mempoolEntry
	required []candidate // the payment
	coins    []candidate // of the wallet that pays the fee
}

// fee returns the most that lifting may cost, in satoshi, or why it is not done. There is room
// for replacements within the ceiling and the share of the payment, which is rounded down.
func (b cpfpBump) fee() (most int64, why string) {
	allowed := min(b.maxFee, b.target.total/maxPaymentShare)
	if b.parent.unspendable {
		return 0, "the node would take no transaction that spends it"
	}

	lacks := b.parent.bumpFee(b.rate)
	if lacks == 0 || b.parent.paidByDescendants(b.rate) {
		return 0, "it pays enough, or what rests on it does"
	}

	if allowed < lacks {
		return 0, "it is not worth what it would cost"
	}

	selected, err := selectCoins(b.target, feePolicy{rate: b.rate, parentFee: lacks, parentRate: b.rate}, b.coins, b.required)
	if err != nil {
		return 0, err.Error()
	}

	if allowed < selected.fee {
		return 0, "it is not worth what it would cost"
	}

	return min(allowed, bumpHeadroom*selected.fee), ""
}

// codeNotBumpable is the code of what need not, or cannot, be lifted now.
const codeNotBumpable = "lift_over"

func notBumpable(order chain.Order, why string) error {
	return fault.New(
		fault.NotFound, codeNotBumpable, "output %s:%d is not to be lifted: %s",
		order.Lift.Outpoint.TxHash, order.Lift.Outpoint.Vout, why,
	)
}

// mempoolEntry is a waiting transaction with the waiting ones that it rests on.
type mempoolEntry struct {
	// ancestorWeight and fees are those of all of them, ownWeight and ownFee those of the transaction alone.
	ancestorWeight, ancestorFees, weight, fee int64
	// descendantWeight and theirFees are those of the transaction and all that rests on it.
	descendantWeight, descendantFees int64
	// unspendable says that nodes would take no child of it.
	unspendable bool
	// ancestorSpends are what all of them use up.
	ancestorSpends []chain.Spend
}

// bumpFee is what a child has to pay for the family, beside its own fee, so that miners take it at a
// rate; 0 when they do without. A transaction that pays too little is not helped by what it rests
// on paying more: that is taken alone.
func (m mempoolEntry) bumpFee(rate int64) int64 {
	return max(feeAt(rate, m.ancestorWeight)-m.ancestorFees, feeAt(rate, m.weight)-m.fee, 0)
}

// paidByDescendants reports whether what rests on the transaction pays for it at a rate already, and for what
// it rests on: another payment of the same transaction was lifted, or the payer helped himself.
func (m mempoolEntry) paidByDescendants(rate int64) bool {
	ancestors := max(feeAt(rate, m.ancestorWeight-m.weight)-(m.ancestorFees-m.fee), 0)
	return m.descendantFees >= feeAt(rate, m.descendantWeight)+ancestors
}

// checkBump is nil when an order's child is to be made, or made anew, at a rate.
func (m mempoolEntry) checkBump(order chain.Order, rate int64) error {
	lacks := m.bumpFee(rate)
	switch {
	case lacks == 0:
		return notBumpable(order, "it pays enough")
	case order.Replaces != nil: // what rests on it is what this replaces
	case m.unspendable:
		return notBumpable(order, "the node would take no transaction that spends it")
	case m.paidByDescendants(rate):
		return notBumpable(order, "what rests on it pays enough")
	default:
		return nil
	}

	old, err := signedTx(*order.Replaces)
	if err != nil {
		return err
	}

	paid, ok := satoshi(order.Replaces.MaxFee)
	if weight := int64(
		3*old.SerializeSizeStripped() + old.SerializeSize(),
	); ok &&
		paid >= lacks+feeAt(rate, roundToVBytes(weight)) {
		return fault.New(
			fault.State, "lift_enough", "transaction %s pays enough for what it rests on",
			order.Replaces.TxHash,
		)
	}

	return nil
}

// parentEntry reads the family of the output that an order lifts; nothing for other orders. An output
// that does not wait in the pool, or that is spent there, by others than the attempt that the order
// replaces, is fault.NotFound (lift_over).
func (e *endpoint) parentEntry(
	ctx context.Context,
	order chain.Order,
	required []candidate,
) (entry mempoolEntry, err error) {
	if order.Lift == nil {
		return mempoolEntry{}, nil
	}

	parent := order.Lift.Outpoint.TxHash

	var answer struct {
		Size            int64 `json:"vsize"`
		Descendants     int   `json:"descendantcount"`
		DescendantsSize int64 `json:"descendantsize"`
		Ancestors       int   `json:"ancestorcount"`
		AncestorsSize   int64 `json:"ancestorsize"`
		Fees            struct {
			Own         json.Number `json:"modified"`
			Ancestors   json.Number `json:"ancestor"`
			Descendants json.Number `json:"descendant"`
		} `json:"fees"`
	}

	err = e.call(ctx, &answer, "getmempoolentry", parent)
	switch {
	case failover.RefusedWith(err, codeNotFound):
		return mempoolEntry{}, notBumpable(order, "its transaction does not wait")
	case failover.RefusedWith(err, codeNoMethod, codeMisc):
		return mempoolEntry{}, fault.New(
			fault.Unsupported,
			"lift_unsupported",
			"node %s does not say what waiting transactions pay (getmempoolentry): payments are lifted "+
				"with Bitcoin Core and its derivatives only",
			e.Host,
		)
	case err != nil:
		return mempoolEntry{}, err
	}

	for _, fee := range []struct {
		number json.Number
		into   *int64
	}{{answer.Fees.Own, &entry.fee}, {answer.Fees.Ancestors, &entry.ancestorFees}, {answer.Fees.Descendants, &entry.descendantFees}} {
		if *fee.into, err = satoshiOf(fee.number.String()); err != nil {
			return mempoolEntry{}, e.Garbled("its fees of transaction %s are no amount", parent)
		}
	}

	if answer.Size < 1 || min(answer.AncestorsSize, answer.DescendantsSize) < answer.Size ||
		max(answer.AncestorsSize, answer.DescendantsSize) > maxEntrySize {
		return mempoolEntry{}, e.Garbled("its sizes of transaction %s cannot be", parent)
	}

	entry.ancestorWeight, entry.weight, entry.descendantWeight = 4*answer.AncestorsSize, 4*answer.Size, 4*answer.DescendantsSize
	entry.unspendable = answer.Ancestors > maxClusterCount || answer.Descendants > maxClusterCount ||
		answer.AncestorsSize > maxClusterSize

	return entry, e.readAncestors(ctx, order, required, &entry)
}

// readAncestors reads the transactions of a family, and checks that the output is as it is on record.
func (e *endpoint) readAncestors(ctx context.Context, order chain.Order, required []candidate, entry *mempoolEntry) error {
	at := order.Lift.Outpoint
	hashes := []string{}

	err := e.call(ctx, &hashes, "getmempoolancestors", at.TxHash)
	if failover.RefusedWith(err, codeNotFound) {
		return notBumpable(order, "its transaction does not wait any more")
	}

	if err != nil {
		return err
	}

	hashes = append(hashes, at.TxHash)
	unspent := newCall("gettxout", at.TxHash, at.Vout, true)

	calls := []*rpcCall{unspent}
	for _, hash := range hashes {
		calls = append(calls, newCall("getrawtransaction", hash, 0))
	}

	if err := e.batchCall(ctx, calls...); err != nil {
		return err
	}

	if unspent.err != nil {
		return unspent.err
	}

	if unspent.isNull() && order.Replaces == nil {
		return notBumpable(order, "it is spent")
	}

	for i, hash := range hashes {
		var text string
		if err := calls[i+1].decode(e, &text); err != nil {
			return e.Garbled("its pool moved while transaction %s was read", e.Clean(hash))
		}

		tx, err := decodeTx(text)
		if err != nil || tx.TxHash().String() != hash {
			return e.Garbled("asked for transaction %s, it answered another", e.Clean(hash))
		}

		entry.ancestorSpends = append(entry.ancestorSpends, spendsOf(tx, hash)...)
		if hash != at.TxHash {
			continue
		}

		entry.unspendable = entry.unspendable || tx.Version == trucVersion
		for _, coin := range required {
			if coin.Outpoint == at &&
				(int(at.Vout) >= len(tx.TxOut) || tx.TxOut[at.Vout].Value != coin.value ||
					!bytes.Equal(tx.TxOut[at.Vout].PkScript, coin.script)) {
				return notBumpable(order, "it is not as it is on record")
			}
		}
	}

	entry.unspendable = entry.unspendable || len(entry.ancestorSpends) > maxAncestorSpends

	return nil
}
