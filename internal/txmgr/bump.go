package txmgr

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// Lifts: a payment that pays the miner too little waits; a transaction of ours spends it, gives the
// whole of it back to its address, and pays for both out of the master wallet. The payment stays
// what it is, in the transaction of its payer; its money is then held by the lift's first output.

const (
	// maxBumps is how many lifts of one wallet may wait at a time: their coins and change are tied
	// up while they do, and payers could replace what they rest on.
	maxBumps = 4
	// maxBumpsPerPayment is how many lifts are queued for one payment in all, when none of them gets signed.
	maxBumpsPerPayment = 8
	// bumpSignTimeout is how long a lift may wait for its signature.
	bumpSignTimeout = 30 * time.Minute
)

// Waiting is a payment in a transaction of somebody else's that waits for a block.
type Waiting struct {
	Owner     event.Owner
	PaymentID string
	Network   string
	// Coin is the output that pays us; its height is 0.
	Coin chain.Coin
	// Since is when it was first seen.
	Since time.Time
}

// Bump queues the transaction that has a waiting payment included, paid by a wallet, if the driver
// is configured to lift payments and this one has waited long enough and is worth it. The most that
// it may cost is reserved with it. queued is false when nothing is to be done, or not now. A node
// that cannot tell is fault.Unsupported.
func (o *Manager) Bump(ctx context.Context, w Waiting, payer chain.Party) (queued bool, err error) {
	driver, err := o.registry.Driver(w.Network)
	if err != nil {
		return false, err
	}

	lifter, ok := driver.(chain.Bumper)
	if !ok {
		return false, nil
	}

	after, on := lifter.BumpAfter()

	l := bumpState{waited: o.now().Sub(w.Since), after: after}
	if !on || l.waited < l.after {
		return false, nil
	}

	own, err := o.Party(ctx, w.Network, payer.Key)
	if err == nil && own.Address != payer.Address {
		return false, nil // somebody else has its key
	}

	if err != nil && !errors.Is(err, fault.Unsupported) {
		return false, err
	}

	if may, err := o.mayBump(ctx, o.db, w, payer, l); err != nil || !may {
		return false, err
	}

	coins, err := o.db.Coins(ctx, w.Network, payer.Address)
	if err != nil {
		return false, err
	}

	var free []chain.Coin

	for _, c := range coins {
		if c.ReservedBy == "" && c.Height > 0 {
			free = append(free, c.Coin)
		}
	}

	order, ok, err := lifter.Bump(ctx, w.Coin, payer, free)
	if err != nil || !ok {
		return false, err
	}

	native, _ := driver.Network().Native()
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
		// The reservation first: it locks the wallet's balance, and so the lifts of the wallet are
		// counted one after the other.
		if err := o.ReserveTx(
			ctx, tx, w.Owner, w.Network, payer.Address, native.ID, t.ID, order.MaxFee,
		); err != nil {
			return err
		}

		may, err := o.mayBump(ctx, tx, w, payer, l)
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
			ctx, "a payment pays the miner too little and is lifted",
			"payment", w.PaymentID, "network", w.Network, "transaction", t.ID,
			"max_fee", order.MaxFee.String(),
		)
	}

	return queued, err
}

// errNotNow takes a reservation back with its transaction: somebody else was faster.
var errNotNow = fault.New(fault.State, "lift_not_now", "the payment is lifted already, or as many as may be")

// mayLift reads what else decides whether a payment is lifted.
func (o *Manager) mayBump(
	ctx context.Context,
	r wallet.Reader,
	w Waiting,
	payer chain.Party,
	l bumpState,
) (bool, error) {
	own, err := r.OwnTransactions(ctx, w.Network, []string{w.Coin.Outpoint.TxHash})
	if err != nil {
		return false, err
	}

	l.own = len(own) > 0
	if l.earlier, err = r.TransactionsOf(ctx, w.PaymentID); err != nil {
		return false, err
	}

	if l.live, err = r.LiveTransactions(ctx, w.Network, payer.Address); err != nil {
		return false, err
	}

	return l.due(), nil
}

// lifting is what the records say of a payment that waits.
type bumpState struct {
	waited, after time.Duration
	// own: the payment is a payout of ours, which is replaced instead.
	own bool
	// earlier are the transactions made for the payment, live those that the wallet is to pay.
	earlier, live []wallet.Transaction
}

// due reports whether the payment may be lifted: it waits long enough, nothing that was signed
// lifts it, nothing that could be will, and no signer refused to.
func (l bumpState) due() bool {
	lifts := 0

	for _, t := range l.live {
		if t.Kind == wallet.Bump {
			lifts++
		}
	}

	for _, t := range l.earlier {
		if t.Kind == wallet.Bump &&
			(t.State != wallet.Failed || t.Failure != wallet.FailCanceled && t.Failure != wallet.FailStale) {
			return false
		}
	}

	return l.waited >= l.after && !l.own && lifts < maxBumps && len(l.earlier) < maxBumpsPerPayment
}

// bookLiftTx books the payment that signed bytes lift as a coin that is theirs, before its block,
// and reserves all that they take from the wallet: the change comes back with their block.
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

	booked := false

	for _, c := range known {
		if c.Outpoint == t.Order.Bumps.Outpoint {
			booked = true
		} else {
			taken = taken.Add(c.Amount)
		}
	}

	if !booked {
		if err := tx.PutCoin(
			ctx, &wallet.Coin{Network: t.Network, Coin: *t.Order.Bumps, ReservedBy: t.ID},
		); err != nil {
			return err
		}
	}

	native, _ := d.network.Native()

	return d.ReserveTx(ctx, tx, t.Owner, t.Network, d.party.Address, native.ID, t.ID, taken)
}

// endLiftTx gives back what a lift reserved that came to nothing.
func (d *walletWorker) endBumpTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	if t.Kind != wallet.Bump || t.State != wallet.Failed {
		return nil
	}

	native, _ := d.network.Native()

	return d.ReleaseTx(ctx, tx, t.Network, d.party.Address, native.ID, t.ID)
}

// displaced is what a cancelling transaction displaces: of a lift only what it takes from the
// wallet, as the payment is not the wallet's and may never be included.
func displacedBytes(t wallet.Transaction) chain.Signed {
	last := t.LastAttempt().Signed
	if t.Order.Bumps != nil {
		last.Inputs = slices.DeleteFunc(
			slices.Clone(last.Inputs),
			func(in chain.Outpoint) bool { return in == t.Order.Bumps.Outpoint },
		)
	}

	return last
}

// CoinsOfPayments returns the coins that hold the money of outputs that paid us: the output itself, or what
// the lift that spent it gave back, once that is final. lifted are the outputs whose lift is on its
// way, or not booked yet; those that are in neither are in no block, or were spent otherwise.
func CoinsOfPayments(
	ctx context.Context,
	r wallet.Reader,
	network string,
	outputs []chain.Outpoint,
) (held map[chain.Outpoint]wallet.Coin, lifted map[chain.Outpoint]bool, err error) {
	coins, err := coinsAt(ctx, r, network, outputs)
	if err != nil {
		return nil, nil, err
	}

	held, lifted = map[chain.Outpoint]wallet.Coin{}, map[chain.Outpoint]bool{}
	paid := map[chain.Outpoint]wallet.Coin{} // by the output that gives it back

	var given []chain.Outpoint

	for _, c := range coins {
		var t wallet.Transaction
		if c.ReservedBy != "" {
			if t, err = r.Transaction(ctx, c.ReservedBy); err != nil {
				return nil, nil, err
			}
		}

		switch {
		case t.Kind != wallet.Bump && c.Height > 0 && c.SpentBy == "":
			held[c.Outpoint] = c
		case t.Kind == wallet.Bump:
			lifted[c.Outpoint] = true

			if t.State == wallet.Confirmed {
				given = append(given, chain.Outpoint{TxHash: t.TxHash}) // its first output
				paid[given[len(given)-1]] = c
			}
		}
	}

	if len(given) == 0 {
		return held, lifted, nil
	}

	back, err := coinsAt(ctx, r, network, given)
	if err != nil {
		return nil, nil, err
	}

	for _, c := range back {
		was := paid[c.Outpoint]
		if c.Height == 0 || c.Owner != was.Owner || c.Amount != was.Amount {
			continue
		}

		delete(lifted, was.Outpoint)

		if c.SpentBy == "" {
			held[was.Outpoint] = c
		}
	}

	return held, lifted, nil
}
