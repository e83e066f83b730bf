package txmgr

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// The exits of a live transaction, by state, all under the lease of its wallet. Each look is due within
// maxPendingInterval.
//
//	queued            signed; failed by its destination, its signer, its money, or at GiveUpAt; a person decides,
//	                  if lost records may have sent it
//	queued cancel     signed at any fee; failed once its nonce is used
//	signed, broadcast included; failed by a final block that used its nonce or coins, or ended its validity;
//	                  replaced within its maximum after ReplaceAfter; displaced by a cancel after CancelAfter
//	… not next        waits for the lower nonce, which has these exits, or for the cancel of a gap
//	… with dependents waits for its dependents, which are bumped and pay for both, or displaced
//	… a cancel        replaced within its maximum, which is raised after each CancelAfter
//	… a sweep of      the same, up to half of its remainder: it blocks nothing, and the rest after a cancel would
//	  coins           belong to no payment; failed once its coins are gone, see gone.go
//	included          confirmed or reverted at finality; broadcast again when its block leaves the chain

// patientBlocks is the number of blocks without bytes that seem to pay enough, after which they are replaced
// all the same: the estimate was wrong.
const patientBlocks = 6

// replace replaces bytes that waited longer than Config.ReplaceAfter, or that no block can hold, by bytes
// that pay more, within the order's maximum fee. They have the same nonce or durable nonce, or share a coin
// (BIP-125). Bytes in the pool that pay the current price are not replaced; see paysEnough. If no replacement
// succeeds until Config.CancelAfter, replace queues a cancel that displaces the bytes, so that the wallet
// goes on. Only the lowest nonce of a wallet is replaced; the others wait for it. A CPFP bump that is in the
// pool is never canceled: it blocks nothing.
func (d *walletWorker) replace(ctx context.Context, t wallet.Transaction, pooled bool) error {
	now := d.now()
	if now.Sub(walletstate.LastAttempt(&t).SignedAt) < d.config.ReplaceAfter {
		if fits, err := d.fits(ctx, t, pooled); err != nil || fits {
			return err
		}
	}

	last, err := d.withoutGone(ctx, t, walletstate.LastAttempt(&t).Signed)
	if err != nil {
		return err
	}

	if !d.hasNonces() && len(last.Inputs) == 0 && last.DurableNonce == nil {
		return nil // the network does not replace, or no output is left to share
	}

	if enough, err := d.paysEnough(ctx, t, pooled); err != nil || enough {
		return err
	}

	live, err := d.db.LiveTransactions(ctx, t.Network, d.party.Address)
	if err != nil {
		return &storeError{err}
	}

	for _, other := range live {
		if other.Kind == wallet.Cancel && other.ObjectID == t.ID {
			return nil // a cancel displaces it already
		}
	}

	if next, err := d.nonceIsNext(ctx, t, live); err != nil || !next {
		return err
	}

	if rests, err := d.waitsForDependents(ctx, t); err != nil || rests {
		return err // its dependents are bumped instead, and pay for both
	}

	if d.raisable(t) { // before a replacement that pays a little more within the old maximum
		raised := walletstate.LastAttempt(&t).Signed
		if err := d.raiseFee(ctx, t, &raised); err != nil {
			return err
		}

		if t, err = d.db.Transaction(ctx, t.ID); err != nil {
			return asStoreError(err)
		}
	}

	if done, err := d.tryReplace(ctx, t, last); done || err != nil {
		return err
	}

	if now.Sub(t.Attempts[0].SignedAt) < d.config.CancelAfter || isRaised(t) ||
		t.Kind == wallet.Bump && pooled {
		return nil
	}

	return d.queueCancel(ctx, cancelOf(t), t.Nonce, &t)
}

// fits reports whether a block may hold the newest bytes, as far as the driver knows. Bytes that nodes refuse
// and that no block can hold are replaced at once.
func (d *walletWorker) fits(ctx context.Context, t wallet.Transaction, pooled bool) (bool, error) {
	checker, ok := d.driver.(chain.FitChecker)
	if !ok || pooled || walletstate.LastAttempt(&t).LastSendError == "" {
		return true, nil
	}

	return checker.Fits(ctx, walletstate.LastAttempt(&t).Signed)
}

// paysEnough reports whether the newest bytes only wait for a block. They are in the pool, the driver reports
// that they pay enough, and fewer than patientBlocks blocks were read since they were signed.
func (d *walletWorker) paysEnough(ctx context.Context, t wallet.Transaction, pooled bool) (bool, error) {
	checker, ok := d.driver.(chain.FeeChecker)
	if !ok || !pooled {
		return false, nil
	}

	cursor, _, err := d.db.Cursor(ctx, t.Network)
	if err != nil {
		return false, &storeError{err}
	}

	if cursor.At.Height >= walletstate.LastAttempt(&t).SignedHeight+patientBlocks {
		return false, nil
	}

	return checker.PaysEnough(ctx, walletstate.LastAttempt(&t).Signed)
}

// nonceIsNext reports whether the transaction's nonce is the next one of the chain; always true without
// nonces.
func (d *walletWorker) nonceIsNext(
	ctx context.Context,
	t wallet.Transaction,
	live []wallet.Transaction,
) (bool, error) {
	if !d.hasNonces() {
		return true, nil
	}

	counted, err := d.nonce(ctx)
	if err != nil {
		return false, err
	}

	return counted == t.Nonce && lowestNonce(t, live), nil
}

// tryReplace signs, stores and broadcasts a replacement of the last bytes, given as withoutGone returns them.
// done is false if there is no replacement. It then logs the reason, unless all attempts are used up. A
// transaction whose maximum fee is raised goes on even then, once per CancelAfter.
func (d *walletWorker) tryReplace(
	ctx context.Context,
	t wallet.Transaction,
	last chain.Signed,
) (done bool, err error) {
	if len(t.Attempts) >= maxAttempts && !d.raisable(t) {
		return false, nil
	}

	order := t.Order

	order.Nonce, order.DurableNonce, order.Replaces = t.Nonce, last.DurableNonce, &last
	order.Outbids = d.hasNonces() && wasRefused(walletstate.LastAttempt(&t))

	if len(last.Inputs) > 0 {
		if order.Coins, err = d.spendableCoins(ctx, t); err != nil {
			return false, err
		}
	}

	a, err := d.makeBumping(ctx, t, order)
	if err == nil {
		err = d.storeAttempt(ctx, t, a)
	}

	if err == nil {
		return true, d.broadcast(ctx, t.ID, a.Signed)
	}

	if d.stops(ctx, err) {
		return false, err
	}

	d.config.Log.InfoContext(
		ctx, "a waiting transaction could not be replaced",
		"transaction", t.ID, "network", t.Network, "error", publicText(err),
	)

	return false, nil
}

// wasRefused reports whether no node ever had an attempt, and the last node that was asked refused it.
func wasRefused(a wallet.Attempt) bool { return a.FirstTakenAt.IsZero() && a.LastSendError != "" }

// makeReplacement signs a replacement. If it could be included in addition to an earlier attempt, the error
// is fault.Unavailable with code replacement_unsafe; see excludesAll.
func (d *walletWorker) makeReplacement(
	ctx context.Context,
	t wallet.Transaction,
	order chain.Order,
) (wallet.Attempt, error) {
	a, err := d.makeAttempt(ctx, t, order)
	if err != nil {
		return wallet.Attempt{}, err
	}

	if len(order.Replaces.Inputs) == 0 {
		return a, nil
	}

	safe, err := d.excludesAll(ctx, t, a.Signed.Inputs)
	if err != nil {
		return wallet.Attempt{}, err
	}

	if !safe {
		return wallet.Attempt{}, unsafeReplacement(t)
	}

	return a, nil
}

// cancelOf returns the cancel of a transaction, without its order. The cancel of a cancel keeps its object.
func cancelOf(t wallet.Transaction) wallet.Transaction {
	object := t.ID
	if t.Kind == wallet.Cancel {
		object = t.ObjectID
	}

	return wallet.Transaction{Owner: t.Owner, Network: t.Network, Kind: wallet.Cancel, ObjectID: object}
}

// cancelOrder returns the order of a cancel at a nonce: 1 base unit from the wallet to itself.
func (d *walletWorker) cancelOrder(nonce uint64) chain.Order {
	native, _ := d.network.Native()

	return chain.Order{
		From:    d.party,
		Nonce:   nonce,
		Outputs: []chain.Output{{To: d.party.Address, AssetID: native.ID, Amount: chain.Units(1)}},
	}
}

// queueCancel queues the cancel that makeCancel returns.
func (d *walletWorker) queueCancel(
	ctx context.Context,
	t wallet.Transaction,
	nonce uint64,
	displaced *wallet.Transaction,
) error {
	cancel, err := d.makeCancel(ctx, t, nonce, displaced)
	if err != nil {
		return err
	}

	return d.write(ctx, func(ctx context.Context, tx wallet.Tx) error {
		_, err := d.EnqueueTx(ctx, tx, cancel)
		return err
	})
}

// makeCancel returns a payment of the wallet to itself, at a nonce or with the coins of the displaced
// transaction. It pays 1 base unit, or the total of those coins.
func (d *walletWorker) makeCancel(
	ctx context.Context,
	t wallet.Transaction,
	nonce uint64,
	displaced *wallet.Transaction,
) (wallet.Transaction, error) {
	order := d.cancelOrder(nonce)

	if displaced != nil {
		if err := d.displaceWith(ctx, &order, *displaced); err != nil {
			return wallet.Transaction{}, err
		}
	}

	if estimator, ok := d.driver.(chain.FeeEstimator); ok {
		most, err := estimator.EstimateFee(ctx, order)
		if err != nil {
			return wallet.Transaction{}, err
		}

		order.MaxFee = chaindata.Max(order.MaxFee, most)
	}

	order.Replaces = nil // filled in when it is signed
	t.Order = order

	return t, nil
}

// cancelUnknown signs a cancel at the network's price, for a wallet that cannot pay more than the displaced
// bytes. If no node has those, they need not be outbid. If a node has them, it returns cause.
func (d *walletWorker) cancelUnknown(
	ctx context.Context,
	t wallet.Transaction,
	order chain.Order,
	cause error,
) (wallet.Attempt, error) {
	if !d.hasNonces() {
		return wallet.Attempt{}, cause
	}

	status, err := d.sender.Status(ctx, *order.Replaces)
	if err != nil {
		return wallet.Attempt{}, err
	}

	if status.State != chain.TxUnknown {
		return wallet.Attempt{}, cause
	}

	order.Replaces = nil

	return d.makeAttempt(ctx, t, order)
}

// isRaised reports whether the maximum fee of a transaction that waits long is raised, instead of being
// displaced. That is so for a cancel and for a sweep of coins.
func isRaised(t wallet.Transaction) bool { return t.Kind == wallet.Cancel || sweepsCoins(t) }

// raisable reports whether the maximum fee of a transaction may be raised now: once per CancelAfter.
func (d *walletWorker) raisable(t wallet.Transaction) bool {
	return isRaised(t) && d.now().Sub(walletstate.LastAttempt(&t).SignedAt) >= d.config.CancelAfter
}

// raiseFee raises the maximum fee of a transaction to the current cost of one that displaces the given bytes.
// Nothing else displaces a cancel, and everything that its wallet signs later waits for it. A sweep of coins
// bears its own fee, and pays at most half of its remainder, which is its last output.
func (d *walletWorker) raiseFee(ctx context.Context, t wallet.Transaction, displaced *chain.Signed) error {
	estimator, ok := d.driver.(chain.FeeEstimator)
	if !ok {
		return nil
	}

	order := t.Order
	order.Replaces = displaced

	most, err := estimator.EstimateFee(ctx, order)
	if err != nil {
		return err
	}

	if sweepsCoins(t) {
		remainder := order.Outputs[len(order.Outputs)-1].Amount
		most = chaindata.Min(most, remainder.Share(chain.Units(1), chain.Units(2))) // rounded down
	}

	return d.update(ctx, t.ID, func(t *wallet.Transaction) error {
		t.Order.MaxFee = chaindata.Max(t.Order.MaxFee, most)
		return nil
	})
}

// displaceWith makes an order pay enough to displace a transaction: a maximum fee of twice the displaced one,
// and on UTXO networks the total of its coins, less the fee.
func (d *walletWorker) displaceWith(
	ctx context.Context,
	order *chain.Order,
	displaced wallet.Transaction,
) error {
	last, err := d.displacedBytes(ctx, displaced)
	if err != nil {
		return err
	}

	order.Replaces, order.MaxFee = &last, last.MaxFee.Mul(2)
	order.Coins, order.SubtractFee = displaced.Order.Coins, len(last.Inputs) > 0

	return d.returnCoins(ctx, order, displaced)
}

// returnCoins makes a cancel return the total of the coins of the bytes that it displaces, less its fee.
func (d *walletWorker) returnCoins(
	ctx context.Context,
	order *chain.Order,
	displaced wallet.Transaction,
) error {
	if len(order.Replaces.Inputs) == 0 {
		return nil
	}

	coins, err := d.spendableCoins(ctx, displaced)
	if err != nil {
		return err
	}

	all := chain.Output{To: order.Outputs[0].To, AssetID: order.Outputs[0].AssetID}

	for _, c := range coins {
		if slices.Contains(order.Replaces.Inputs, c.Outpoint) {
			all.Amount = all.Amount.Add(c.Amount)
		}
	}

	order.Outputs = []chain.Output{all}

	return nil
}
