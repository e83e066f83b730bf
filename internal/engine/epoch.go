package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/counter"
)

// This file keeps records that are older than the chain from paying twice: a new epoch after a restore.

const (
	// epochSkip is what a new epoch skips of each counter for itself and for each that the records do not know: more
	// numbers than any of them gave out.
	epochSkip = 1 << 20
	// epochCounter is the counter whose next number is the stored epoch.
	epochCounter = "epoch"
	// maxEpoch leaves half of the 2^31 indexes of derivation to the last epoch.
	maxEpoch = 1 << 10
	// accountsPage is the number of accounts per query.
	accountsPage = 500
	// maxFrozen bounds the wallets per network in Health.
	maxFrozen = 1000
)

// awaitEpoch is beginEpoch, repeated until it succeeds or ctx ends. Where Config.Epoch is 0 nothing waits for it: each
// kind of work tries it with its first change, and says in Health what failed.
func (e *Engine) awaitEpoch(ctx context.Context) error {
	if e.config.Epoch == 0 {
		return nil
	}

	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = minPace, 30*time.Second

	for {
		err := e.beginEpoch(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}

		retryIn := pause.NextBackOff()
		e.config.Log.WarnContext(
			ctx, "the new epoch could not begin; nothing runs before", "again_in", retryIn, "error", err,
		)

		if !sleep(ctx, retryIn) {
			return ctx.Err()
		}
	}
}

// epoch is the epoch that this process numbers events by, and whether it has begun here.
type epoch struct {
	begun atomic.Bool
	// begins is a semaphore of one: whoever holds it begins the epoch.
	begins chan struct{}
	// number is the higher of Config.Epoch and the stored epoch: a process that was not given the new one
	// publishes nothing with numbers below those of the others.
	number atomic.Uint64
}

// beginEpoch freezes every wallet and skips every counter when Config.Epoch is above the stored epoch. It comes before
// the first change of a process: a number that was given out after the backup is not given out again. It is
// idempotent: the stored epoch rises last.
func (e *Engine) beginEpoch(ctx context.Context) error {
	if e.epoch.begun.Load() {
		return nil
	}

	select {
	case e.epoch.begins <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}

	defer func() { <-e.epoch.begins }()

	if e.epoch.begun.Load() {
		return nil
	}

	stored, err := e.readEpoch(ctx)
	if err != nil {
		return err
	}

	if stored < e.config.Epoch {
		e.config.Log.WarnContext(
			ctx, "a new epoch begins: every wallet is frozen until Engine.Unfreeze",
			"epoch", e.config.Epoch, "was", stored,
		)

		if err := e.freezeAll(ctx, e.config.Epoch-stored); err != nil {
			return err
		}

		if err := e.update(ctx, e.raiseEpoch); err != nil && !errors.Is(err, errOnlyRead) {
			return err
		}
	}

	e.epoch.begun.Store(true)

	return nil
}

// readEpoch returns the stored epoch, and has events numbered by it where it is above Config.Epoch. The store may have
// been restored, and another process have begun a new epoch, while this one ran.
func (e *Engine) readEpoch(ctx context.Context) (stored uint64, err error) {
	if stored, err = e.storedEpoch(ctx); err != nil {
		return 0, err
	}

	was := e.epoch.number.Swap(max(stored, e.config.Epoch))
	if stored > e.config.Epoch && stored != was {
		e.config.Log.WarnContext(
			ctx,
			"the records are in a later epoch than this process was given: raise Config.Epoch here as well",
			"epoch", e.config.Epoch, "stored", stored,
		)
	}

	return stored, nil
}

// errOnlyRead rolls back a transaction that only reads.
var errOnlyRead = errors.New("nothing is stored")

// storedEpoch returns the epoch that the records are in. A counter is read by taking a number and rolling back.
func (e *Engine) storedEpoch(ctx context.Context) (stored uint64, err error) {
	err = e.update(ctx, func(ctx context.Context, tx Tx) error {
		next, err := tx.ReserveNumbers(ctx, epochCounter, 1, 0)
		if err != nil {
			return err
		}

		stored = uint64(next)

		return errOnlyRead
	})
	if errors.Is(err, errOnlyRead) {
		err = nil
	}

	return stored, err
}

// raiseEpoch stores Config.Epoch, unless another process did, and skips the counters of all accounts.
func (e *Engine) raiseEpoch(ctx context.Context, tx Tx) error { // spec D11.12
	next, err := tx.ReserveNumbers(ctx, epochCounter, 1, 0)
	if err != nil {
		return err
	}

	rise := int64(e.config.Epoch) - next
	if rise > 1 {
		_, err = tx.ReserveNumbers(ctx, epochCounter, int(rise-1), 0)
	} else if rise < 1 {
		return errOnlyRead
	}

	if err != nil {
		return err
	}

	counters := []string{counter.AccountIndex}
	spaces := map[chain.Space]bool{}

	for _, d := range e.Networks.Drivers() {
		if space := d.Network().Space(); !spaces[space] {
			spaces[space] = true

			counters = append(counters, counter.DerivationIndex(space))
		}
	}

	return skip(ctx, tx, uint64(rise), counters)
}

// skip takes epochSkip numbers of each counter for each of some epochs. Nobody uses them: where an older backup is
// restored than the last time, the epochs in between gave them out.
func skip(ctx context.Context, tx Tx, epochs uint64, counters []string) error {
	for _, name := range counters {
		if _, err := tx.ReserveNumbers(ctx, name, int(epochs)*epochSkip, 1); err != nil {
			return err
		}
	}

	return nil
}

// freezeAll freezes the master wallets of all accounts and skips their invoice numbers of some epochs, a page of
// accounts per transaction.
func (e *Engine) freezeAll(ctx context.Context, epochs uint64) error {
	after := ""
	for {
		page, err := e.config.Store.Accounts(ctx, after, accountsPage)
		if err != nil || len(page) == 0 {
			return err
		}

		masters, err := e.masters(ctx, page)
		if err != nil {
			return err
		}

		err = e.update(ctx, func(ctx context.Context, tx Tx) error {
			for _, m := range masters {
				if err := e.Transactions.BeginEpochTx(ctx, tx, m.network, m.party); err != nil {
					return err
				}
			}

			for _, a := range page {
				numbers := []string{
					counter.InvoiceNumber(event.Owner{AccountID: a.ID}),
					counter.InvoiceNumber(event.Owner{AccountID: a.ID, Livemode: true}),
				}
				if err := skip(ctx, tx, epochs, numbers); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			return err
		}

		after = page[len(page)-1].ID
	}
}

// master is a master wallet on one network.
type master struct {
	network string
	party   chain.Party
}

// masters returns the master wallets of accounts on all networks, or on the one named.
func (e *Engine) masters(
	ctx context.Context,
	accounts []account.Account,
	network ...string,
) ([]master, error) {
	var found []master

	for _, d := range e.Networks.Drivers() {
		n := d.Network()
		if len(network) > 0 && network[0] != n.Slug {
			continue
		}

		for _, a := range accounts {
			p, err := e.Transactions.MasterWallet(ctx, n.Slug, a.Index)
			if errors.Is(err, fault.Forbidden) || errors.Is(err, fault.Unsupported) {
				continue // the signer has no such key, or the driver no wallets: nothing is ever sent
			}

			if err != nil {
				return nil, err
			}

			found = append(found, master{n.Slug, p})
		}
	}

	return found, nil
}

// walletHealth adds the frozen wallets of a network to a report.
func (e *Engine) walletHealth(ctx context.Context, n chain.Network, h *health.Report) error {
	frozen, err := e.config.Store.FrozenWallets(ctx, n.Slug, maxFrozen)
	if err != nil || len(frozen) == 0 {
		return err
	}

	addresses := make([]chain.Address, len(frozen))
	for i, w := range frozen {
		addresses[i] = w.Party.Address
	}

	known, err := e.config.Store.MatchAddresses(ctx, n.Space(), addresses)
	if err != nil {
		return err
	}

	owners := map[chain.Address]event.Owner{}
	for _, a := range known {
		owners[a.Address] = a.Owner
	}

	for _, w := range frozen {
		h.Wallets = append(h.Wallets, health.Wallet{
			Network:   n.Slug,
			Address:   string(w.Party.Address),
			AccountID: owners[w.Party.Address].AccountID,
			Frozen:    true,
			FrozenBy:  w.FrozenBy,
			FrozenAt:  w.FrozenAt,
			Reason:    string(w.Frozen),
		})
	}

	return nil
}
