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
	// liftShare is which part of a payment lifting it may cost at most: a tenth.
	liftShare = 10
	// maxFamily and maxFamilySize bound a waiting transaction with those that rest on it, or on
	// which it rests, ours left out: nodes take no more than 25 of them with 101,000 vB. Source:
	// Bitcoin Core, DEFAULT_ANCESTOR_LIMIT and its like.
	maxFamily     = 24
	maxFamilySize = 95_000
	// maxRests bounds what is kept of the inputs of waiting ancestors, from which the death of the
	// child is proven.
	maxRests = 500
	// maxPoolSize bounds the sizes that a node may say, so that rate × weight cannot overflow: no
	// pool has so many vB.
	maxPoolSize = 1e9
	// topological is the version of transactions whose children have to be of it as well and small (BIP-431).
	topological = 3
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

	n, err := d.needOf(order)
	if err != nil {
		return chain.Order{}, false, err
	}

	free, required, err := d.candidates(order)
	if err != nil {
		return chain.Order{}, false, err
	}

	var most int64

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		f, err := e.familyOf(ctx, order, required)
		if err != nil {
			return err
		}

		r, err := d.rates(ctx, e)
		if err != nil {
			return err
		}

		l := lifting{
			ceiling:  int64(d.config.LiftMaxFee),
			rate:     r.current,
			need:     n,
			family:   f,
			required: required,
			coins:    free,
		}

		var why string
		if most, why = l.decide(); why != "" {
			return over(order, why)
		}

		return nil
	})
	if fault.Code(err) == liftOver {
		return chain.Order{}, false, nil
	}

	order.MaxFee, order.Coins = units(most), nil // chosen among the wallet's when it is signed

	return order, err == nil, err
}

// lifting is all that decides whether a waiting payment is lifted.
type lifting struct {
	ceiling  int64 // Config.LiftMaxFee
	rate     int64 // what miners take now
	need     need  // the payment, back to its address
	family   family
	required []candidate // the payment
	coins    []candidate // of the wallet that pays the fee
}

// decide returns the most that lifting may cost, in satoshi, or why it is not done. There is room
// for replacements within the ceiling and the share of the payment, which is rounded down.
func (l lifting) decide() (most int64, why string) {
	allowed := min(l.ceiling, l.need.payments/liftShare)
	if l.family.crowded {
		return 0, "the node would take no transaction that spends it"
	}

	lacks := l.family.lacks(l.rate)
	if lacks == 0 || l.family.carried(l.rate) {
		return 0, "it pays enough, or what rests on it does"
	}

	if allowed < lacks {
		return 0, "it is not worth what it would cost"
	}

	s, err := choose(l.need, price{rate: l.rate, lift: lacks, liftRate: l.rate}, l.coins, l.required)
	if err != nil {
		return 0, err.Error()
	}

	if allowed < s.fee {
		return 0, "it is not worth what it would cost"
	}

	return min(allowed, headroom*s.fee), ""
}

// liftOver is the code of what need not, or cannot, be lifted now.
const liftOver = "lift_over"

func over(order chain.Order, why string) error {
	return fault.New(
		fault.NotFound, liftOver, "output %s:%d is not to be lifted: %s",
		order.Lift.Outpoint.TxHash, order.Lift.Outpoint.Vout, why,
	)
}

// family is a waiting transaction with the waiting ones that it rests on.
type family struct {
	// weight and fees are those of all of them, ownWeight and ownFee those of the transaction alone.
	weight, fees, ownWeight, ownFee int64
	// withChildren and theirFees are those of the transaction and all that rests on it.
	withChildren, theirFees int64
	// crowded says that nodes would take no child of it.
	crowded bool
	// rests are what all of them use up.
	rests []chain.Spend
}

// lacks is what a child has to pay for the family, beside its own fee, so that miners take it at a
// rate; 0 when they do without. A transaction that pays too little is not helped by what it rests
// on paying more: that is taken alone.
func (f family) lacks(rate int64) int64 {
	return max(feeAt(rate, f.weight)-f.fees, feeAt(rate, f.ownWeight)-f.ownFee, 0)
}

// carried reports whether what rests on the transaction pays for it at a rate already, and for what
// it rests on: another payment of the same transaction was lifted, or the payer helped himself.
func (f family) carried(rate int64) bool {
	ancestors := max(feeAt(rate, f.weight-f.ownWeight)-(f.fees-f.ownFee), 0)
	return f.theirFees >= feeAt(rate, f.withChildren)+ancestors
}

// wants is nil when an order's child is to be made, or made anew, at a rate.
func (f family) wants(order chain.Order, rate int64) error {
	lacks := f.lacks(rate)
	switch {
	case lacks == 0:
		return over(order, "it pays enough")
	case order.Replaces != nil: // what rests on it is what this replaces
	case f.crowded:
		return over(order, "the node would take no transaction that spends it")
	case f.carried(rate):
		return over(order, "what rests on it pays enough")
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
		paid >= lacks+feeAt(rate, wholeBytes(weight)) {
		return fault.New(
			fault.State, "lift_enough", "transaction %s pays enough for what it rests on",
			order.Replaces.TxHash,
		)
	}

	return nil
}

// familyOf reads the family of the output that an order lifts; nothing for other orders. An output
// that does not wait in the pool, or that is spent there, by others than the attempt that the order
// replaces, is fault.NotFound (lift_over).
func (e *endpoint) familyOf(
	ctx context.Context,
	order chain.Order,
	required []candidate,
) (f family, err error) {
	if order.Lift == nil {
		return family{}, nil
	}

	parent := order.Lift.Outpoint.TxHash

	var entry struct {
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

	err = e.one(ctx, &entry, "getmempoolentry", parent)
	switch {
	case failover.RefusedWith(err, codeNotFound):
		return family{}, over(order, "its transaction does not wait")
	case failover.RefusedWith(err, codeNoMethod, codeMisc):
		return family{}, fault.New(
			fault.Unsupported,
			"lift_unsupported",
			"node %s does not say what waiting transactions pay (getmempoolentry): payments are lifted "+
				"with Bitcoin Core and its derivatives only",
			e.Host,
		)
	case err != nil:
		return family{}, err
	}

	for _, fee := range []struct {
		number json.Number
		into   *int64
	}{{entry.Fees.Own, &f.ownFee}, {entry.Fees.Ancestors, &f.fees}, {entry.Fees.Descendants, &f.theirFees}} {
		if *fee.into, err = satoshiOf(fee.number.String()); err != nil {
			return family{}, e.Garbled("its fees of transaction %s are no amount", parent)
		}
	}

	if entry.Size < 1 || min(entry.AncestorsSize, entry.DescendantsSize) < entry.Size ||
		max(entry.AncestorsSize, entry.DescendantsSize) > maxPoolSize {
		return family{}, e.Garbled("its sizes of transaction %s cannot be", parent)
	}

	f.weight, f.ownWeight, f.withChildren = 4*entry.AncestorsSize, 4*entry.Size, 4*entry.DescendantsSize
	f.crowded = entry.Ancestors > maxFamily || entry.Descendants > maxFamily ||
		entry.AncestorsSize > maxFamilySize

	return f, e.rests(ctx, order, required, &f)
}

// rests reads the transactions of a family, and checks that the output is as it is on record.
func (e *endpoint) rests(ctx context.Context, order chain.Order, required []candidate, f *family) error {
	at := order.Lift.Outpoint
	hashes := []string{}

	err := e.one(ctx, &hashes, "getmempoolancestors", at.TxHash)
	if failover.RefusedWith(err, codeNotFound) {
		return over(order, "its transaction does not wait any more")
	}

	if err != nil {
		return err
	}

	hashes = append(hashes, at.TxHash)
	unspent := newCall("gettxout", at.TxHash, at.Vout, true)

	calls := []*call{unspent}
	for _, hash := range hashes {
		calls = append(calls, newCall("getrawtransaction", hash, 0))
	}

	if err := e.do(ctx, calls...); err != nil {
		return err
	}

	if unspent.err != nil {
		return unspent.err
	}

	if unspent.null() && order.Replaces == nil {
		return over(order, "it is spent")
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

		f.rests = append(f.rests, spends(tx, hash)...)
		if hash != at.TxHash {
			continue
		}

		f.crowded = f.crowded || tx.Version == topological
		for _, c := range required {
			if c.Outpoint == at &&
				(int(at.Vout) >= len(tx.TxOut) || tx.TxOut[at.Vout].Value != c.value ||
					!bytes.Equal(tx.TxOut[at.Vout].PkScript, c.script)) {
				return over(order, "it is not as it is on record")
			}
		}
	}

	f.crowded = f.crowded || len(f.rests) > maxRests

	return nil
}
