package sim

// Child pays for parent (CPFP): a waiting payment to us is spent by a transaction of ours that pays the
// fee of both.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// codeNotBumpable is the code of a coin that needs no bump, or cannot have one now.
const codeNotBumpable = "bump_not_needed"

// BumpAfter returns UTXOConfig.CPFPAfter; on is false without UTXOConfig.CPFPMaxFee.
func (u *UTXO) BumpAfter() (after time.Duration, on bool) {
	return u.config.CPFPAfter, u.config.CPFPMaxFee > 0
}

// Bump returns the order that bumps an unconfirmed coin at the current rate; ok is false when it needs no
// bump or cannot have one. A bump costs at most a tenth of the payment, and UTXOConfig.CPFPMaxFee.
func (u *UTXO) Bump(
	ctx context.Context,
	coin chain.Coin,
	wallet chain.Party,
	coins []chain.Coin,
) (order chain.Order, ok bool, err error) {
	if err := u.call(ctx, MethodBump); err != nil {
		return chain.Order{}, false, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	order = chain.Order{
		From:    wallet,
		Outputs: []chain.Output{{To: coin.Owner.Address, AssetID: u.native.ID, Amount: coin.Amount}},
		Bumps:   &coin,
		Coins:   coins,
	}

	target, err := u.target(order)
	if err != nil {
		return chain.Order{}, false, err
	}

	parents, err := u.checkBump(order)
	if fault.Code(err) == codeNotBumpable {
		return chain.Order{}, false, nil
	}

	if err != nil {
		return chain.Order{}, false, err
	}

	free, required, err := u.candidates(order)
	if err != nil {
		return chain.Order{}, false, err
	}

	allowed := min(u.config.CPFPMaxFee, target.total/10)

	selected, err := target.choose(utxoFee{rate: u.rate(), parents: parents}, free, required)
	if err != nil || selected.fee > allowed {
		return chain.Order{}, false, nil //nolint:nilerr // too few coins, or not worth it: nothing to be done
	}

	order.MaxFee, order.Coins = chain.Units(min(allowed, feeHeadroom*selected.fee)), nil

	return order, true, nil
}

// checkBump returns what a child pays for its unconfirmed parents, beside its own fee. It errors:
//   - fault.NotFound (bump_not_needed): they need no child, or can have none
//   - fault.State (bump_sufficient): the child that the order replaces pays enough
func (u *UTXO) checkBump(order chain.Order) (parents uint64, err error) {
	at := order.Bumps.Outpoint

	parent := u.pool.byHash[at.TxHash]
	if parent == nil {
		return 0, notBumpable(order, "its transaction does not wait")
	}

	_, isOurs := u.coinOf(*order.Bumps, true)
	spender := u.pool.spender[at]

	if !isOurs || (spender != nil && (order.Replaces == nil || spender.hash != order.Replaces.TxHash)) {
		return 0, notBumpable(order, "it is spent, or not as it is on record")
	}

	ancestors, descendants := u.pool.ancestors(parent), u.pool.descendants(parent)
	if len(ancestors) >= maxPoolAncestors || (len(descendants) >= maxPoolAncestors && order.Replaces == nil) {
		return 0, notBumpable(order, "the pool would take no transaction that spends it")
	}

	// What the parents lack; ancestors that pay more than the rate do not help.
	rate := u.rate()
	fee, vsize := sumOf(ancestors)

	parents = max(lacking(rate, fee, vsize), lacking(rate, parent.fee, parent.vsize))
	if parents == 0 {
		return 0, notBumpable(order, "it pays enough")
	}

	if order.Replaces != nil {
		paid, _ := unitsOf(order.Replaces.MaxFee)
		if old, err := decodeUTXO(
			order.Replaces.Raw,
		); err == nil &&
			paid >= parents+feeAt(rate, old.vsize()) {
			return 0, fault.New(
				fault.State, "bump_sufficient", "transaction %s pays enough for its parents",
				order.Replaces.TxHash,
			)
		}

		return parents, nil
	}

	// Other descendants may pay already.
	above := lacking(rate, fee-parent.fee, vsize-parent.vsize)

	fee, vsize = sumOf(descendants)
	if fee >= feeAt(rate, vsize)+above {
		return 0, notBumpable(order, "what spends it pays enough")
	}

	return parents, nil
}

// PaysEnough reports whether a waiting transaction, alone and with what it rests on, pays the current rate.
func (u *UTXO) PaysEnough(ctx context.Context, signed chain.Signed) (bool, error) {
	if err := u.call(ctx, MethodPaysEnough); err != nil {
		return false, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	entry := u.pool.byHash[signed.TxHash]
	if entry == nil {
		return false, nil
	}

	fee, vsize := sumOf(u.pool.ancestors(entry))

	return lacking(u.rate(), fee, vsize) == 0 && lacking(u.rate(), entry.fee, entry.vsize) == 0, nil
}

// lacking returns by how much a fee is below that of a rate.
func lacking(rate, fee, vsize uint64) uint64 {
	least := feeAt(rate, vsize)
	return least - min(least, fee)
}

func notBumpable(order chain.Order, reason string) error {
	return fault.New(
		fault.NotFound, codeNotBumpable, "output %s:%d is not to be bumped: %s",
		order.Bumps.Outpoint.TxHash, order.Bumps.Outpoint.Vout, reason,
	)
}
