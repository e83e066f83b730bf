package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/counter"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
)

// This file prevents restored, older records from paying twice: after a restore, a new epoch begins.

const (
	// epochSkip is how many numbers of each counter a new epoch skips, for itself and for each epoch that the
	// records do not know. It is more than any epoch used.
	epochSkip = 1 << 20
	// epochCounter is the counter whose next number is the stored epoch; each key space has a counter of its
	// own, see partOf. The next number of beganCounter is when the epoch began, in seconds since 1970. That
	// of firstAccountCounter is the index of the first account that was made in the epoch.
	epochCounter        = "epoch"
	beganCounter        = "epoch/began"
	firstAccountCounter = "epoch/first-account"
	// maxEpoch leaves half of the 2^31 derivation indexes to the last epoch.
	maxEpoch = 1 << 10
	// accountsPage is the number of accounts per query.
	accountsPage = 500
)

// awaitEpoch repeats beginEpoch until it succeeds or ctx ends. If Config.Epoch is 0 nothing waits for it:
// each kind of work tries it with its first change, and shows a failure in Health.
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

// epoch is the epoch of the records, as far as this process knows, and whether it has begun here.
type epoch struct {
	// begun is one more than the number of the last epoch that began here.
	begun atomic.Uint64
	// begins is a semaphore of one: its holder begins the epoch.
	begins chan struct{}
	// reading is held while the stored epoch is read, so that an older reading replaces no newer one.
	reading sync.Mutex
	// known has the higher of Config.Epoch and the stored epoch. So a process without the new Config.Epoch
	// does not publish events with lower numbers than the others.
	known atomic.Pointer[txmgr.Epoch]
}

// now returns the epoch of the records.
func (e *epoch) now() txmgr.Epoch {
	if known := e.known.Load(); known != nil {
		return *known
	}

	return txmgr.Epoch{}
}

// hasBegun reports whether the epoch has begun here.
func (e *epoch) hasBegun() bool { return e.begun.Load() == e.now().Number+1 }

// beginEpoch freezes every wallet and skips numbers of every counter when Config.Epoch is above the stored
// epoch. It also skips numbers of key spaces that no process had when the epoch began. It comes before the
// first change of a process, so that a number that was given out after the backup is not given out again. It
// is idempotent: the stored epochs rise last.
//
// If a wallet could not be frozen then, because its network was not served or its key was missing, it is
// frozen later: when it is registered (registerTx), or before it signs (see txmgr.Manager.BeginEpochTx).
func (e *Engine) beginEpoch(ctx context.Context) error {
	if e.epoch.hasBegun() {
		return nil
	}

	select {
	case e.epoch.begins <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}

	defer func() { <-e.epoch.begins }()

	for !e.epoch.hasBegun() {
		if err := e.readEpoch(ctx); err != nil {
			return err
		}

		number := e.epoch.now().Number

		behind, err := e.partsBehind(ctx, number)
		if err != nil {
			return err
		}

		if len(behind) == 0 {
			e.epoch.begun.Store(number + 1)
		} else if err := e.enterEpoch(ctx, number, behind); err != nil {
			return err
		}
	}

	return nil
}

// part has an epoch of its own: the accounts, or a key space. The key space of a network that is served later
// was not known when the epoch began.
type part struct {
	epoch  string // the counter whose next number is the part's epoch
	skips  string // the counter that skips numbers
	stored uint64
}

// partOf returns the part of the key space of a network.
func partOf(n chain.Network) part {
	index := counter.DerivationIndex(n.Space())

	return part{epoch: epochCounter + "/" + index, skips: index}
}

// partsBehind returns the parts that are in an earlier epoch. Their order is the same in all processes:
// accounts first.
func (e *Engine) partsBehind(ctx context.Context, number uint64) ([]part, error) {
	if number == 0 {
		return nil, nil
	}

	parts := []part{{epoch: epochCounter, skips: counter.AccountIndex}}

	for _, d := range e.Networks.Drivers() {
		if p := partOf(d.Network()); !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}

	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.epoch, b.epoch) })

	counters := make([]string, len(parts))
	for i, p := range parts {
		counters[i] = p.epoch
	}

	next, err := e.nextNumbers(ctx, counters...)
	if err != nil {
		return nil, err
	}

	var behind []part

	for i, p := range parts {
		if p.stored = uint64(next[i]); p.stored < number {
			behind = append(behind, p)
		}
	}

	return behind, nil
}

// enterEpoch begins the epoch for parts that are behind, unless another process does so meanwhile.
func (e *Engine) enterEpoch(ctx context.Context, number uint64, behind []part) error {
	began := e.storeNow()

	if accounts := behind[0]; accounts.epoch == epochCounter {
		e.config.Log.WarnContext(
			ctx, "a new epoch begins: every wallet is frozen until Engine.Unfreeze",
			"epoch", number, "was", accounts.stored,
		)

		if err := e.freezeAll(ctx, number-accounts.stored); err != nil {
			return err
		}
	}

	err := e.update(
		ctx,
		func(ctx context.Context, tx Tx) error { return raiseEpoch(ctx, tx, number, began, behind) },
	)
	if errors.Is(err, errRaised) {
		return nil
	}

	return err
}

// readEpoch reads the stored epoch, which numbers events if it is above Config.Epoch. While this process ran,
// the store may have been restored, and another process may have begun a new epoch: then it begins here as
// well.
func (e *Engine) readEpoch(ctx context.Context) error {
	e.epoch.reading.Lock()
	defer e.epoch.reading.Unlock()

	next, err := e.nextNumbers(ctx, epochCounter, beganCounter, firstAccountCounter)
	if err != nil {
		return err
	}

	known := &txmgr.Epoch{
		Number:       uint64(next[0]),
		FirstAccount: uint32(next[2]),
		Began:        time.Unix(next[1], 0).UTC(),
	}
	if known.Number < e.config.Epoch {
		known = &txmgr.Epoch{Number: e.config.Epoch, FirstAccount: math.MaxUint32}
	}

	was := e.epoch.now().Number
	e.epoch.known.Store(known)

	if known.Number > max(was, e.config.Epoch) {
		e.config.Log.WarnContext(
			ctx,
			"the records are in a later epoch than this process was given: raise Config.Epoch here as well",
			"epoch", e.config.Epoch, "stored", known.Number,
		)
	}

	return nil
}

var (
	// errOnlyRead rolls back a transaction that only reads.
	errOnlyRead = errors.New("nothing is stored")
	// errRaised rolls back a transaction when another process raised the epoch first.
	errRaised = errors.New("another process began the epoch")
)

// nextNumbers returns the next number of each counter. It takes a number of each, and rolls back.
func (e *Engine) nextNumbers(ctx context.Context, counters ...string) ([]int64, error) {
	next := make([]int64, len(counters))

	err := e.update(ctx, func(ctx context.Context, tx Tx) (err error) {
		for i, name := range counters {
			if next[i], err = tx.ReserveNumbers(ctx, name, 1, 0); err != nil {
				return err
			}
		}

		return errOnlyRead
	})
	if errors.Is(err, errOnlyRead) {
		err = nil
	}

	return next, err
}

// raiseEpoch stores the epoch of parts, unless another process did, and skips numbers of their counters.
func raiseEpoch(
	ctx context.Context,
	tx Tx,
	number uint64,
	began time.Time,
	behind []part,
) error { // spec D11.12
	for _, p := range behind {
		missed := number - p.stored

		was, err := tx.ReserveNumbers(ctx, p.epoch, int(missed), 0)
		if err != nil {
			return err
		}

		if uint64(was) != p.stored {
			return errRaised
		}

		first, err := skip(ctx, tx, missed, p.skips)
		if err != nil {
			return err
		}

		if p.skips != counter.AccountIndex {
			continue
		}

		if err := setNext(ctx, tx, beganCounter, began.Unix()); err != nil {
			return err
		}

		if err := setNext(ctx, tx, firstAccountCounter, first); err != nil {
			return err
		}
	}

	return nil
}

// setNext raises the next number of a counter, or leaves a higher one; reading it always takes one number.
func setNext(ctx context.Context, tx Tx, name string, next int64) error {
	was, err := tx.ReserveNumbers(ctx, name, 1, 0)
	if err != nil || next <= was+1 {
		return err
	}

	_, err = tx.ReserveNumbers(ctx, name, int(next-was-1), 0)

	return err
}

// skip takes epochSkip numbers of a counter for each of some epochs, and returns the number after them. They
// are never used: if the backup is older than the last restored one, the epochs in between gave them out.
func skip(ctx context.Context, tx Tx, epochs uint64, name string) (next int64, err error) {
	numbers := int(epochs) * epochSkip
	first, err := tx.ReserveNumbers(ctx, name, numbers, 1)

	return first + int64(numbers), err
}

// freezeAll freezes the master wallets of all accounts and skips the invoice numbers of some epochs, one page
// of accounts per transaction.
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
				for _, livemode := range []bool{false, true} {
					numbers := counter.InvoiceNumber(event.Owner{AccountID: a.ID, Livemode: livemode})
					if _, err := skip(ctx, tx, epochs, numbers); err != nil {
						return err
					}
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

// masters returns the master wallets of accounts on all networks, or on the named one.
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
				continue // the signer has no such key, or the driver no wallets: it never sends
			}

			if err != nil {
				return nil, err
			}

			found = append(found, master{n.Slug, p})
		}
	}

	return found, nil
}
