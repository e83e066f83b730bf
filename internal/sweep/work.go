package sweep

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/together"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// The bounds of what one Step reads.
const (
	maxDue  = 200
	mostDue = 64 * maxDue // that are looked through for some at an address that is free
	// senderLag is how long maxDue transactions may be overdue before no release is begun.
	senderLag = 30 * time.Second
	// unreadGrace is how long no release is begun at an address where a payment waits for its balance to be read.
	unreadGrace = 10 * time.Minute
)

// Step runs one planning run of each account with work on a network, one after the other. Live releases get their next
// transaction, what failed for replanning is queued again, and waiting settlements are released, held or failed.
//
// It returns false when nothing was due or other processes plan it. A failing release is postponed and logged;
// the error is the store's or the context's.
func (s *Sweeper) Step(ctx context.Context, network string) (did bool, err error) { // spec 3.4.1
	return s.StepTogether(ctx, network, 1)
}

// StepTogether does what Step does, for up to limit accounts at a time, and in any order if that is more than one.
func (s *Sweeper) StepTogether(ctx context.Context, network string, limit int) (did bool, err error) {
	driver, err := s.registry.Driver(network)
	if err != nil {
		return false, err
	}

	planner, ok := driver.(chain.Sweeper)
	if !ok {
		return false, nil
	}

	_, spendsCoins := driver.(chain.CoinReader)

	next, due, waits, err := s.dueWork(ctx, network, spendsCoins)
	if err != nil {
		return false, err
	}

	work := byAccount(next, due, waits)
	if limit > 1 {
		together.Shuffle(work)
	}

	var planned atomic.Bool

	err = together.Each(ctx, limit, work, func(ctx context.Context, work accountWork) error {
		run := &planningRun{
			Sweeper:     s,
			network:     driver.Network(),
			planner:     planner,
			spendsCoins: spendsCoins,
			accountID:   work.accountID,
		}
		run.native, _ = run.network.Native()

		did, err := run.run(ctx, work)
		if did {
			planned.Store(true)
		}

		return err
	})

	return planned.Load(), err
}

// accountWork is what is due of one account. waits are the settlements that are left out and do not say why yet.
type accountWork struct {
	accountID string
	next      []settlement.Sweep
	due       []settlement.Settlement
	waits     []waiting
}

// waiting is a settlement that is due and left out of planning, and why: a code, a colon and a sentence.
type waiting struct {
	settlement.Settlement
	why string
}

// say records why it waits, once it has waited for so long that this is shown. It reports whether that is new.
func (w *waiting) say(now time.Time) bool {
	return w.Status == settlement.Pending && now.Sub(w.ConfirmedAt) >= walletstate.WaitShownAfter &&
		settlementstate.Wait(&w.Settlement, w.why, w.ConfirmedAt)
}

// byAccount groups due work by account.
func byAccount(
	next []settlement.Sweep,
	due []settlement.Settlement,
	waits []waiting,
) (all []accountWork) {
	at := map[string]int{}
	of := func(accountID string) *accountWork {
		i, found := at[accountID]
		if !found {
			i = len(all)
			at[accountID] = i
			all = append(all, accountWork{accountID: accountID})
		}

		return &all[i]
	}

	for _, r := range next {
		work := of(r.Owner.AccountID)
		work.next = append(work.next, r)
	}

	for _, s := range due {
		work := of(s.Owner.AccountID)
		work.due = append(work.due, s)
	}

	for _, w := range waits {
		work := of(w.Owner.AccountID)
		work.waits = append(work.waits, w)
	}

	return all
}

// dueWork reads the releases that need their next transaction, and the settlements that may be released, oldest first.
// waits are those that may not, and do not say why yet.
func (s *Sweeper) dueWork(
	ctx context.Context,
	network string,
	spendsCoins bool,
) (next []settlement.Sweep, due []settlement.Settlement, waits []waiting, err error) {
	next, err = s.db.DueSweeps(ctx, network, s.now(), maxDue)
	if err != nil {
		return nil, nil, nil, err
	}

	// Where the last look found that nothing would be signed soon, that is asked first: many may wait meanwhile.
	if s.piled(network) {
		if unsigned, err := s.piles(ctx, network); err != nil || unsigned {
			return next, nil, nil, err
		}
	}

	// Many that wait at a busy address hide nobody else.
	for limit := maxDue; ; limit *= 2 {
		due, err = s.db.DueSettlements(ctx, network, s.now(), limit)
		if err != nil {
			return nil, nil, nil, err
		}

		all := len(due) < limit

		if limit == maxDue && len(due) > 0 {
			if unsigned, err := s.piles(ctx, network); err != nil || unsigned {
				return next, nil, nil, err
			}
		}

		if !spendsCoins {
			due, waits, err = s.withoutWaiting(ctx, network, due)
			if err != nil {
				return nil, nil, nil, err
			}
		}

		if len(due) > 0 || all || limit >= mostDue {
			return next, due[:min(len(due), maxDue)], waits[:min(len(waits), maxDue)], nil
		}
	}
}

// withoutWaiting leaves out the settlements that may not be planned now, and returns those that do not say why yet.
func (s *Sweeper) withoutWaiting(
	ctx context.Context,
	network string,
	due []settlement.Settlement,
) (free []settlement.Settlement, unsaid []waiting, err error) {
	free, busy, err := s.withoutBusy(ctx, network, due)
	if err != nil {
		return nil, nil, err
	}

	free, unread, err := s.withoutUnread(ctx, network, free)
	if err != nil {
		return nil, nil, err
	}

	for _, w := range append(busy, unread...) {
		if w.say(s.now()) {
			unsaid = append(unsaid, w)
		}
	}

	return free, unsaid, nil
}

// piles reports whether what is planned now would not be signed soon: the network is not read up to its tip, or many
// transactions wait long beyond their time. It would be given up after a while, and planned anew.
func (s *Sweeper) piles(ctx context.Context, network string) (piles bool, err error) {
	n, _ := s.registry.Network(network)

	defer func() { s.piling.Store(network, piles) }()

	if lags, err := s.outbox.Lags(ctx, n); err != nil || lags {
		return lags, err
	}

	late, err := s.db.DueTransactions(ctx, network, s.now().Add(-senderLag), maxDue)

	return len(late) == maxDue, err
}

// piled returns what piles reported last.
func (s *Sweeper) piled(network string) bool {
	piles, _ := s.piling.Load(network)
	return piles == true
}

// withoutBusy leaves out the settlements at whose addresses a release is under way: an address has one at a time, so
// that none counts on the native coin of another. Coins are distinct and need no such rule. Tokens do not wait for a
// release that is stalled: their top-up brings the coin that its nonce needs. Nor does what claims what earlier sweeps
// brought: that needs no transaction.
func (s *Sweeper) withoutBusy(
	ctx context.Context,
	network string,
	due []settlement.Settlement,
) (free []settlement.Settlement, waits []waiting, err error) {
	live, err := s.db.SweepsAt(ctx, network, addressesOf(due))
	if err != nil {
		return nil, nil, err
	}

	busy := map[chain.Address]bool{}
	unpaid := map[chain.Address]string{} // the asset that still waits where a release cannot go on

	for _, r := range live {
		stalled, err := s.isStalled(ctx, &r)
		if err != nil {
			return nil, nil, err
		}

		if !stalled {
			busy[r.Deposit.Address] = true
			continue
		}

		row, _, err := s.db.Residue(ctx, network, r.Deposit.Address)
		if err != nil {
			return nil, nil, err
		}

		if len(row.Unclaimed) == 0 {
			unpaid[r.Deposit.Address] = r.AssetID
		}
	}

	for _, d := range due {
		switch {
		case busy[d.Deposit.Address]:
			waits = append(waits, waiting{d, waitsForRelease})
		case unpaid[d.Deposit.Address] == d.AssetID:
			waits = append(waits, waiting{d, waitsForStalled})
		default:
			free = append(free, d)
		}
	}

	return free, waits, nil
}

// withoutUnread leaves out the settlements at whose addresses a payment waits for its balance to be read, for
// unreadGrace: a release that is under way hides what arrived, and where one follows another nothing would ever be
// measured.
func (s *Sweeper) withoutUnread(
	ctx context.Context,
	network string,
	due []settlement.Settlement,
) (free []settlement.Settlement, waits []waiting, err error) {
	if s.config.Unread == nil || len(due) == 0 {
		return due, nil, nil
	}

	since, err := s.config.Unread(ctx, network)
	if err != nil {
		return nil, nil, err
	}

	for _, d := range due {
		if at, unread := since[d.Deposit.Address]; unread && s.now().Sub(at) < unreadGrace {
			waits = append(waits, waiting{d, waitsForBalance})
		} else {
			free = append(free, d)
		}
	}

	return free, waits, nil
}

// addressesOf returns the deposit addresses of settlements, each once.
func addressesOf(all []settlement.Settlement) (addresses []chain.Address) {
	for _, s := range all {
		addresses = append(addresses, s.Deposit.Address)
	}

	slices.Sort(addresses)

	return slices.Compact(addresses)
}
