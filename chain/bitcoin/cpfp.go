package bitcoin

// Child pays for parent (CPFP). A deposit whose transaction pays too low a fee is spent, while it is
// unconfirmed, by a transaction of ours that pays for both.

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

const (
	// maxPaymentShare is the divisor of the largest share of a payment that a bump may cost: a tenth.
	maxPaymentShare = 10
	// maxClusterCount and maxClusterSize, in vB, bound the ancestors and descendants of a parent, without our
	// child. Nodes accept at most 25 and 101,000 vB. Source: Bitcoin Core, DEFAULT_ANCESTOR_LIMIT,
	// DEFAULT_ANCESTOR_SIZE_LIMIT_KVB.
	maxClusterCount = 24
	maxClusterSize  = 95_000
	// maxAncestorSpends bounds the inputs of unconfirmed ancestors that are recorded to prove conflicts.
	maxAncestorSpends = 500
	// maxEntrySize bounds reported sizes, in vB, so that rate × weight cannot overflow.
	maxEntrySize = 1e9
	// trucVersion is a transaction version whose children must have it too and be small (BIP-431).
	trucVersion = 3
)

// BumpAfter returns Config.CPFPAfter; on is false without Config.CPFPMaxFee.
func (d *driver) BumpAfter() (after time.Duration, on bool) {
	return d.config.CPFPAfter, d.config.CPFPMaxFee > 0
}

// Bump returns the order that bumps an unconfirmed coin at the current fee rate. ok is false when the coin
// needs no bump or cannot have one. Only nodes like Bitcoin Core report the fees of unconfirmed transactions
// (getmempoolentry); with btcd the error is fault.Unsupported (bump_unsupported).
func (d *driver) Bump(
	ctx context.Context,
	coin chain.Coin,
	wallet chain.Party,
	coins []chain.Coin,
) (order chain.Order, ok bool, err error) {
	order = chain.Order{
		From:    wallet,
		Outputs: []chain.Output{{To: coin.Owner.Address, AssetID: d.native.ID, Amount: coin.Amount}},
		Bumps:   &coin,
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

	var maxFee int64

	err = d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		parent, err := node.parentEntry(ctx, order, required)
		if err != nil {
			return err
		}

		rates, err := d.readFeeRates(ctx, node)
		if err != nil {
			return err
		}

		bump := cpfpBump{
			maxFee:   int64(d.config.CPFPMaxFee),
			rate:     rates.estimate,
			target:   target,
			parent:   parent,
			required: required,
			coins:    free,
		}

		var reason string
		if maxFee, reason = bump.fee(); reason != "" {
			return notBumpable(order, reason)
		}

		return nil
	})
	if fault.Code(err) == codeNotBumpable {
		return chain.Order{}, false, nil
	}

	order.MaxFee, order.Coins = satoshiAmount(maxFee), nil // Build chooses among the wallet's coins

	return order, err == nil, err
}

// cpfpBump holds the inputs of the decision whether to bump a payment.
type cpfpBump struct {
	// maxFee is Config.CPFPMaxFee in satoshi.
	maxFee int64
	// rate is the rate of inclusion, in satoshi per 1000 virtual bytes.
	rate int64
	// target pays the payment back to its own address.
	target coinTarget
	parent mempoolEntry
	// required is the payment's coin; coins are the coins of the wallet that pays the fee.
	required []candidate
	coins    []candidate
}

// fee returns the most that the bump may cost, in satoshi, or the reason why there is no bump. It includes
// headroom for replacements, within maxFee and the share of the payment, which is rounded down.
func (b cpfpBump) fee() (maxFee int64, reason string) {
	const notWorthIt = "it is not worth what it would cost"

	allowed := min(b.maxFee, b.target.total/maxPaymentShare)
	if b.parent.unspendable {
		return 0, "the node would take no transaction that spends it"
	}

	bumpFee := b.parent.bumpFee(b.rate)
	if bumpFee == 0 || b.parent.paidByDescendants(b.rate) {
		return 0, "it pays enough, or what rests on it does"
	}

	if allowed < bumpFee {
		return 0, notWorthIt
	}

	policy := feePolicy{rate: b.rate, parentFee: bumpFee, parentRate: b.rate}

	selected, err := selectCoins(b.target, policy, b.coins, b.required)
	if err != nil {
		return 0, err.Error()
	}

	if allowed < selected.fee {
		return 0, notWorthIt
	}

	return min(allowed, bumpHeadroom*selected.fee), ""
}

// codeNotBumpable is the code of a coin that needs no bump, or cannot have one now.
const codeNotBumpable = "bump_not_needed"

func notBumpable(order chain.Order, reason string) error {
	return fault.New(
		fault.NotFound, codeNotBumpable, "output %s:%d is not to be bumped: %s",
		order.Bumps.Outpoint.TxHash, order.Bumps.Outpoint.Vout, reason,
	)
}

// mempoolEntry is an unconfirmed transaction with its unconfirmed ancestors and descendants. Weights are
// weight units, fees satoshi. Source: Bitcoin Core, getmempoolentry.
type mempoolEntry struct {
	weight, fee int64
	// ancestorWeight and ancestorFees include the transaction itself, and so do the values for descendants.
	ancestorWeight, ancestorFees     int64
	descendantWeight, descendantFees int64
	// unspendable is set if nodes would accept no child of it.
	unspendable bool
	// ancestorSpends are the outputs that it and its ancestors spend.
	ancestorSpends []chain.Spend
}

// bumpFee returns the fee that a child pays in addition to its own, in satoshi, for the parent's inclusion at
// a rate; 0 when none is needed. Ancestors that pay more than the rate do not help, as miners include them
// without the parent.
func (m mempoolEntry) bumpFee(rate int64) int64 {
	return max(feeAt(rate, m.ancestorWeight)-m.ancestorFees, feeAt(rate, m.weight)-m.fee, 0)
}

// paidByDescendants reports whether descendants pay for the transaction and its ancestors at a rate. Examples
// are the child of another payment in the transaction, and a child by the payer.
func (m mempoolEntry) paidByDescendants(rate int64) bool {
	ancestors := max(feeAt(rate, m.ancestorWeight-m.weight)-(m.ancestorFees-m.fee), 0)
	return m.descendantFees >= feeAt(rate, m.descendantWeight)+ancestors
}

// checkBump returns nil if a child should be built, or rebuilt, at a rate. It errors:
//   - fault.NotFound (bump_not_needed): the parent needs no child, or cannot have one
//   - fault.State (bump_sufficient): the child that the order replaces pays enough
func (m mempoolEntry) checkBump(order chain.Order, rate int64) error {
	bumpFee := m.bumpFee(rate)
	switch {
	case bumpFee == 0:
		return notBumpable(order, "it pays enough")
	case order.Replaces != nil: // the descendant is the replaced child
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
	if ok && paid >= bumpFee+feeAt(rate, roundToVBytes(weightOf(old))) {
		return fault.New(
			fault.State, "bump_sufficient", "transaction %s pays enough for what it rests on",
			order.Replaces.TxHash,
		)
	}

	return nil
}

// entryJSON is an answer of getmempoolentry: counts, sizes in vB and fees in bitcoin, each including the
// transaction itself.
type entryJSON struct {
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

// parentEntry returns the mempool entry of the transaction that an order bumps; zero for other orders. It
// errors:
//   - fault.NotFound (bump_not_needed): the coin left the mempool, or a transaction other than the one that the
//     order replaces spends it
//   - fault.Unsupported (bump_unsupported): the node does not report fees of the mempool
func (e *endpoint) parentEntry(
	ctx context.Context,
	order chain.Order,
	required []candidate,
) (mempoolEntry, error) {
	if order.Bumps == nil {
		return mempoolEntry{}, nil
	}

	var answer entryJSON

	err := e.call(ctx, &answer, "getmempoolentry", order.Bumps.Outpoint.TxHash)
	switch {
	case failover.RefusedWith(err, codeNotFound):
		return mempoolEntry{}, notBumpable(order, "its transaction does not wait")
	case failover.RefusedWith(err, codeNoMethod, codeMisc):
		return mempoolEntry{}, fault.New(
			fault.Unsupported,
			"bump_unsupported",
			"node %s does not say what waiting transactions pay (getmempoolentry): payments are bumped "+
				"with Bitcoin Core and its derivatives only",
			e.Host,
		)
	case err != nil:
		return mempoolEntry{}, err
	}

	entry, err := answer.entry(e, order.Bumps.Outpoint.TxHash)
	if err != nil {
		return mempoolEntry{}, err
	}

	err = e.readAncestors(ctx, order, required, &entry)

	return entry, err
}

// entry converts an answer into weight units and satoshi.
func (j entryJSON) entry(node *endpoint, hash string) (entry mempoolEntry, err error) {
	for _, fee := range []struct {
		number json.Number
		into   *int64
	}{
		{j.Fees.Own, &entry.fee},
		{j.Fees.Ancestors, &entry.ancestorFees},
		{j.Fees.Descendants, &entry.descendantFees},
	} {
		if *fee.into, err = satoshiOf(fee.number.String()); err != nil {
			return mempoolEntry{}, node.Garbled("its fees of transaction %s are no amount", hash)
		}
	}

	if j.Size < 1 || min(j.AncestorsSize, j.DescendantsSize) < j.Size ||
		max(j.AncestorsSize, j.DescendantsSize) > maxEntrySize {
		return mempoolEntry{}, node.Garbled("its sizes of transaction %s cannot be", hash)
	}

	entry.weight, entry.ancestorWeight, entry.descendantWeight = 4*j.Size, 4*j.AncestorsSize, 4*j.DescendantsSize
	entry.unspendable = j.Ancestors > maxClusterCount || j.Descendants > maxClusterCount ||
		j.AncestorsSize > maxClusterSize

	return entry, nil
}

// readAncestors reads the outputs that an entry and its ancestors spend, and checks that the coin is as it is
// on record.
func (e *endpoint) readAncestors(
	ctx context.Context,
	order chain.Order,
	required []candidate,
	entry *mempoolEntry,
) error {
	at := order.Bumps.Outpoint
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
		tx, err := calls[i+1].mempoolTx(e, hash)
		if err != nil {
			return err
		}

		entry.ancestorSpends = append(entry.ancestorSpends, spendsOf(tx, hash)...)
		if hash != at.TxHash {
			continue
		}

		entry.unspendable = entry.unspendable || tx.Version == trucVersion
		if !pays(tx, at, required) {
			return notBumpable(order, "it is not as it is on record")
		}
	}

	entry.unspendable = entry.unspendable || len(entry.ancestorSpends) > maxAncestorSpends

	return nil
}

// mempoolTx decodes the answer of getrawtransaction for a transaction of the mempool.
func (c *rpcCall) mempoolTx(node *endpoint, hash string) (*wire.MsgTx, error) {
	var text string
	if err := c.decode(node, &text); err != nil {
		return nil, node.Garbled("its pool moved while transaction %s was read", node.Clean(hash))
	}

	tx, err := decodeTx(text)
	if err != nil || tx.TxHash().String() != hash {
		return nil, node.Garbled("asked for transaction %s, it answered another", node.Clean(hash))
	}

	return tx, nil
}

// pays reports whether a transaction has the output of the coin at an outpoint.
func pays(tx *wire.MsgTx, at chain.Outpoint, coins []candidate) bool {
	for _, coin := range coins {
		if coin.Outpoint != at {
			continue
		}

		if int(at.Vout) >= len(tx.TxOut) {
			return false
		}

		output := tx.TxOut[at.Vout]
		if output.Value != coin.value || !bytes.Equal(output.PkScript, coin.script) {
			return false
		}
	}

	return true
}
