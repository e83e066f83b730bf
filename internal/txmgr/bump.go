package txmgr

import (
	"context"
	"errors"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// A CPFP bump: a payment whose fee is too low waits in the pool. A transaction of ours spends it, pays its
// whole amount back to its address, and takes the fee for both from the master wallet. The payment is still
// recorded with its payer's transaction; the first output of the bump then holds its money.

const (
	// maxBumps is the number of bumps of one wallet that may wait at a time: they reserve coins and change,
	// and payers could replace the transactions that they spend from.
	maxBumps = 4
	// maxBumpsPerPayment is the number of bumps that are queued for one payment in all, if none gets signed.
	maxBumpsPerPayment = 8
	// bumpSignTimeout is the time that a bump may wait for its signature.
	bumpSignTimeout = 30 * time.Minute
)

// WaitingPayment is a payment in a payer's transaction that waits for a block.
type WaitingPayment struct {
	Owner     event.Owner
	PaymentID string
	Network   string
	// Coin is the output that pays us; its height is 0.
	Coin chain.Coin
	// Since is the time at which it was first seen.
	Since time.Time
}

// Bump queues the CPFP bump of a waiting payment, paid by a wallet, and reserves its maximum fee. queued is
// false if no bump is needed or possible now. Then the driver does not bump, the payment has not waited long
// enough or is not worth it, or the wallet lacks the money or its key. If a node does not report the fees of
// waiting transactions, the error is fault.Unsupported.
func (o *Manager) Bump(ctx context.Context, w WaitingPayment, payer chain.Party) (queued bool, err error) {
	driver, err := o.registry.Driver(w.Network)
	if err != nil {
		return false, err
	}

	bumper, ok := driver.(chain.Bumper)
	if !ok {
		return false, nil
	}

	after, on := bumper.BumpAfter()

	state := bumpState{waited: o.now().Sub(w.Since), after: after}
	if !on || state.waited < state.after {
		return false, nil
	}

	if owned, err := o.mayOwn(ctx, w.Network, payer); err != nil || !owned {
		return false, err
	}

	if may, err := o.mayBump(ctx, o.db, w, payer, state); err != nil || !may {
		return false, err
	}

	coins, err := o.unreservedCoins(ctx, w.Network, payer.Address)
	if err != nil {
		return false, err
	}

	order, ok, err := bumper.Bump(ctx, w.Coin, payer, coins)
	if err != nil || !ok {
		return false, err
	}

	return o.queueBump(ctx, w, payer, order, state)
}

// mayOwn reports whether the signer's key gives a party's address. It is true if the driver cannot derive
// addresses: Assemble then checks the signatures.
func (o *Manager) mayOwn(ctx context.Context, network string, party chain.Party) (bool, error) {
	own, err := o.Party(ctx, network, party.Key)
	if errors.Is(err, fault.Unsupported) {
		return true, nil
	}

	if err != nil {
		return false, err
	}

	return own.Address == party.Address, nil
}

// unreservedCoins returns the coins of an address that are in blocks, unspent and not reserved.
func (o *Manager) unreservedCoins(
	ctx context.Context,
	network string,
	address chain.Address,
) ([]chain.Coin, error) {
	cursor, _, err := o.db.Cursor(ctx, network)
	if err != nil {
		return nil, err
	}

	coins, err := o.db.Coins(ctx, network, address)
	if err != nil {
		return nil, err
	}

	var unreserved []chain.Coin

	for _, c := range coins {
		if c.ReservedBy == "" && c.Height > 0 && walletstate.Mature(c, cursor.At.Height) {
			unreserved = append(unreserved, c.Coin)
		}
	}

	return unreserved, nil
}

// queueBump stores the bump of a payment and its reservation, unless another process was faster.
func (o *Manager) queueBump(
	ctx context.Context,
	w WaitingPayment,
	payer chain.Party,
	order chain.Order,
	state bumpState,
) (queued bool, err error) {
	network, _ := o.registry.Network(w.Network)
	native, _ := network.Native()

	t := wallet.Transaction{
		ID:       o.config.IDs.Next(),
		Owner:    w.Owner,
		Network:  w.Network,
		Kind:     wallet.Bump,
		ObjectID: w.PaymentID,
		Order:    order,
		GiveUpAt: o.now().Add(bumpSignTimeout),
	}

	err = o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		queued = false

		// The reservation locks the wallet's balance, so that bumps of one wallet are counted in turn.
		err := o.ReserveTx(ctx, tx, w.Owner, w.Network, payer.Address, native.ID, t.ID, order.MaxFee)
		if err != nil {
			return err
		}

		may, err := o.mayBump(ctx, tx, w, payer, state)
		if err != nil {
			return err
		}

		if !may {
			return errNotNow
		}

		_, err = o.EnqueueTx(ctx, tx, t)
		queued = err == nil

		return err
	})
	if fault.Code(err) == fault.Code(errNotNow) || fault.Code(err) == "insufficient_balance" {
		return false, nil
	}

	if err == nil {
		o.config.Log.InfoContext(
			ctx, "a payment pays the miner too little and is bumped",
			"payment", w.PaymentID, "network", w.Network, "transaction", t.ID,
			"max_fee", order.MaxFee.String(),
		)
	}

	return queued, err
}

// errNotNow rolls the reservation back: another process was faster.
var errNotNow = fault.New(fault.State, "bump_not_now", "the payment is bumped already, or as many as may be")

// mayBump reports whether the records allow a bump of the payment; see bumpState.due.
func (o *Manager) mayBump(
	ctx context.Context,
	r wallet.Reader,
	w WaitingPayment,
	payer chain.Party,
	state bumpState,
) (bool, error) {
	own, err := r.OwnTransactions(ctx, w.Network, []string{w.Coin.Outpoint.TxHash})
	if err != nil {
		return false, err
	}

	state.own = len(own) > 0
	if state.earlier, err = r.TransactionsOf(ctx, w.PaymentID); err != nil {
		return false, err
	}

	if state.live, err = r.LiveTransactions(ctx, w.Network, payer.Address); err != nil {
		return false, err
	}

	return state.due(), nil
}

// bumpState holds the records about a waiting payment.
type bumpState struct {
	waited, after time.Duration
	// own is set when the payment is a payout of ours, which is replaced instead.
	own bool
	// earlier are the transactions made for the payment; live are the live ones that the wallet pays.
	earlier, live []wallet.Transaction
}

// due reports whether the payment may be bumped. It must have waited long enough. No earlier bump of it may
// be signed, queued or refused by the signer, and the bounds must allow one more.
func (s bumpState) due() bool {
	waiting := 0

	for _, t := range s.live {
		if t.Kind == wallet.Bump {
			waiting++
		}
	}

	for _, t := range s.earlier {
		if t.Kind == wallet.Bump &&
			(t.State != wallet.Failed || t.Failure != wallet.FailCanceled && t.Failure != wallet.FailStale) {
			return false
		}
	}

	return s.waited >= s.after && !s.own && waiting < maxBumps && len(s.earlier) < maxBumpsPerPayment
}

// reserveBumpTx stores the payment that signed bytes bump as a coin reserved by them, before its block. It
// reserves all coins of the wallet that the bytes spend; the change returns with their block.
func (d *walletWorker) reserveBumpTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	inputs []chain.Outpoint,
) error {
	if t.Order.Bumps == nil {
		return nil
	}

	known, err := coinsAt(ctx, tx, t.Network, inputs)
	if err != nil {
		return err
	}

	var taken chain.Amount

	stored := false

	for _, c := range known {
		if c.Outpoint == t.Order.Bumps.Outpoint {
			stored = true
		} else {
			taken = taken.Add(c.Amount)
		}
	}

	if !stored {
		payment := wallet.Coin{Network: t.Network, Coin: *t.Order.Bumps, ReservedBy: t.ID}
		if err := tx.PutCoin(ctx, &payment); err != nil {
			return err
		}
	}

	native, _ := d.network.Native()

	return d.ReserveTx(ctx, tx, t.Owner, t.Network, d.party.Address, native.ID, t.ID, taken)
}

// endReservationTx releases the reservation of a failed bump, and the amount that a fork reserved again for a
// cancel. The reservations of other kinds belong to their objects.
func (d *walletWorker) endReservationTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	if t.Kind != wallet.Bump && t.Kind != wallet.Cancel || t.State != wallet.Failed {
		return nil
	}

	native, _ := d.network.Native()

	return d.UnreserveTx(ctx, tx, t.Network, d.party.Address, native.ID, t.ID)
}

// CoinsOfPayments returns, for each output that paid us, the coin that holds its money: the output itself, or
// the output in which its CPFP bump paid it back, once that is final. waiting are immature block rewards and
// the outputs whose bump is not final or not indexed yet. An output in neither result is in no block, or was
// spent by another transaction.
func CoinsOfPayments(
	ctx context.Context,
	r wallet.Reader,
	network string,
	outputs []chain.Outpoint,
) (held map[chain.Outpoint]wallet.Coin, waiting map[chain.Outpoint]bool, err error) {
	cursor, _, err := r.Cursor(ctx, network)
	if err != nil {
		return nil, nil, err
	}

	coins, err := coinsAt(ctx, r, network, outputs)
	if err != nil {
		return nil, nil, err
	}

	held, waiting = map[chain.Outpoint]wallet.Coin{}, map[chain.Outpoint]bool{}
	payments := map[chain.Outpoint]wallet.Coin{} // by the output that pays it back

	var returned []chain.Outpoint

	for _, c := range coins {
		var t wallet.Transaction
		if c.ReservedBy != "" {
			if t, err = r.Transaction(ctx, c.ReservedBy); err != nil {
				return nil, nil, err
			}
		}

		switch {
		case !walletstate.Mature(c, cursor.At.Height):
			waiting[c.Outpoint] = true
		case t.Kind != wallet.Bump && c.Height > 0 && c.SpentBy == "":
			held[c.Outpoint] = c
		case t.Kind == wallet.Bump:
			waiting[c.Outpoint] = true

			if t.State == wallet.Confirmed {
				returned = append(returned, chain.Outpoint{TxHash: t.TxHash}) // its first output
				payments[returned[len(returned)-1]] = c
			}
		}
	}

	if len(returned) == 0 {
		return held, waiting, nil
	}

	returnedCoins, err := coinsAt(ctx, r, network, returned)
	if err != nil {
		return nil, nil, err
	}

	holdReturned(held, waiting, payments, returnedCoins)

	return held, waiting, nil
}

// holdReturned moves payments that a bump paid back from waiting to held. payments are by the output that
// pays them back.
func holdReturned(
	held map[chain.Outpoint]wallet.Coin,
	waiting map[chain.Outpoint]bool,
	payments map[chain.Outpoint]wallet.Coin,
	returned []wallet.Coin,
) {
	for _, c := range returned {
		payment := payments[c.Outpoint]
		if c.Height == 0 || c.Owner != payment.Owner || c.Amount != payment.Amount {
			continue
		}

		delete(waiting, payment.Outpoint)

		if c.SpentBy == "" {
			held[payment.Outpoint] = c
		}
	}
}
