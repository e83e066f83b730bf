package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/store"
)

// stillTooLong is how long another process's heartbeat may stand still before it is reported.
const stillTooLong = heartbeat.LeaseFor / 3

// Health returns the state of every network, of each kind of work, of the other processes, and the wallets
// that do not send. If something cannot be read, it is reported as a failing check; the only error is that of
// ctx.
func (e *Engine) Health(ctx context.Context) (health.Report, error) {
	now := e.config.Now()
	report := health.Report{
		Checks:    e.work.checks(now),
		ClockSkew: e.clock.skew(),
	}

	report.Attention, report.AttentionAt = e.attention.get()
	report.Backlogs, report.Backlog, report.DueAt = e.Deliverer.Backlogs()

	for _, peer := range e.heartbeat.Peers() {
		ahead := peer.Ahead + e.clock.skew() // of the store's clock
		report.Processes = append(report.Processes, health.Process{
			Name:       peer.Process,
			Still:      peer.Still,
			ClockAhead: peer.Ahead,
			ClockWrong: e.clock.isChecked() && ahead.Abs() > skewTooBig,
			Failing:    peer.Failing,
			Lost:       peer.Still > stillTooLong,
		})
	}

	for _, f := range e.followers {
		if err := e.networkHealth(ctx, f, &report); err != nil {
			if ctx.Err() != nil {
				return health.Report{}, err
			}

			report.Checks = append(report.Checks, health.Check{
				Name:         "records of " + f.Driver.Network().Slug,
				Error:        err.Error(),
				FailingSince: now,
			})
		}
	}

	report.Wallets = append(report.Wallets, e.unserved.get()...)

	return report, nil
}

// networkHealth adds a network and its wallets.
func (e *Engine) networkHealth(ctx context.Context, f *follow.Follower, report *health.Report) error {
	slug := f.Driver.Network().Slug
	n := health.Network{Network: slug, Follower: f.Health()}

	c, _, err := e.config.Store.Cursor(ctx, slug)

	n.Height, n.Tip, n.Stopped, n.ReadAt = c.At.Height, c.Tip.Height, c.Stopped, c.UpdatedAt
	n.Behind = c.Tip.Height - min(c.Tip.Height, c.At.Height)
	n.Stale = isStaleTip(f.Driver.Network(), c, e.config.Now())
	n.TipAhead = e.tipAhead(c)
	n.Unconfirmed = e.Transactions.Unconfirmed(slug)
	e.addNodes(f.Driver, &n)

	waiting, retriesErr := e.waitingTransfers(ctx, slug)
	n.Follower.Unread = append(n.Follower.Unread, waiting...)

	ranges, rangesErr := e.waitingHistories(ctx, slug, n.Follower.Unread)
	n.Follower.Unread = append(n.Follower.Unread, ranges...)

	report.Networks = append(report.Networks, n)

	if err := errors.Join(err, retriesErr, rangesErr); err != nil {
		return err
	}

	if err := e.walletHealth(ctx, f.Driver.Network(), report); err != nil {
		return err
	}

	stuck, err := e.Transactions.StuckWallets(ctx, slug)
	report.Wallets = append(report.Wallets, stuck...)

	pooled, pooledErr := e.heldByPool(ctx, f.Driver.Network())
	err = errors.Join(err, pooledErr)

	report.Wallets = append(report.Wallets, pooled...)
	report.Wallets = append(report.Wallets, e.Transactions.UnusableNonces(slug)...)
	report.Wallets = append(report.Wallets, e.Transactions.Disputes(slug)...)
	report.Wallets = append(report.Wallets, e.Sweeper.Waiting(slug)...)

	return err
}

// maxFrozen bounds the wallets per network in Health.
const maxFrozen = 1000

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

// heldByPool returns the wallets that sign nothing because the network's pool has transactions of theirs that
// are not on record.
func (e *Engine) heldByPool(ctx context.Context, n chain.Network) ([]health.Wallet, error) {
	unrecorded := e.Transactions.UnrecordedInPool(n.Slug)
	if len(unrecorded) == 0 {
		return nil, nil
	}

	ours, err := e.config.Store.MatchAddresses(ctx, n.Space(), slices.Sorted(maps.Keys(unrecorded)))

	var held []health.Wallet

	for _, a := range ours {
		if len(unrecorded[a.Address]) == 0 {
			continue
		}

		held = append(held, health.Wallet{
			Network:   n.Slug,
			Address:   string(a.Address),
			AccountID: a.Owner.AccountID,
			Reason: fmt.Sprintf(
				"nothing is signed: the pool has %s, which is not on record; see Engine.Acknowledge",
				strings.Join(unrecorded[a.Address], ", "),
			),
		})
	}

	return held, err
}

// waitingTransfers returns up to 100 transfers of a network that wait for a retry, oldest first. Either their
// balances could not be read, or a record or a hook refused them.
func (e *Engine) waitingTransfers(ctx context.Context, network string) ([]health.Unread, error) {
	rows, err := e.config.Store.Retries(ctx, network, e.config.Now().AddDate(100, 0, 0), 100)

	waiting := make([]health.Unread, len(rows))
	for i, row := range rows {
		waiting[i] = health.Unread{
			Address: string(row.Transfer.To),
			TxHash:  row.Transfer.TxHash,
			Height:  row.Block.Height,
			Error:   row.Error,
			Since:   row.CreatedAt,
		}
	}

	return waiting, err
}

// historyWithin is how long the rest of an address's history may wait to be read before Health names it.
const historyWithin = 2 * time.Minute

// waitingHistories returns up to 100 addresses of a network, oldest first, a part of whose history has waited
// to be read for more than historyWithin. It leaves out addresses that are named already. It also returns the
// blocks that were passed, as no node had them.
func (e *Engine) waitingHistories(
	ctx context.Context,
	network string,
	named []health.Unread,
) ([]health.Unread, error) {
	ranges, err := e.config.Store.Ranges(ctx, network, 100)

	var waiting []health.Unread

	known := map[string]bool{}
	for _, u := range named {
		known[u.Address] = true
	}

	for _, r := range ranges {
		if scanstate.IsGap(r) {
			waiting = append(waiting, health.Unread{
				Height: r.Next,
				Error: fmt.Sprintf(
					"blocks %d to %d were not read: no node had them when the network was resumed; "+
						"they are read once a node has them", r.Next, r.To,
				),
				Since: r.CreatedAt,
			})
		}

		if len(r.Addresses) == 0 || known[string(r.Addresses[0])] ||
			e.config.Now().Sub(r.CreatedAt) < historyWithin {
			continue
		}

		what := fmt.Sprintf("blocks %d to %d are still to be read for it", r.Next, r.To)
		if others := len(r.Addresses) - 1; others > 0 {
			what = fmt.Sprintf(
				"blocks %d to %d are still to be read for it and %d others",
				r.Next,
				r.To,
				others,
			)
		}

		waiting = append(waiting, health.Unread{
			Address: string(r.Addresses[0]),
			Height:  r.Next,
			Error:   what,
			Since:   r.CreatedAt,
		})
	}

	return waiting, err
}

// probeStore reads from the store, and probes it for changes of its schema, file or epoch.
func (e *Engine) probeStore(ctx context.Context) error {
	if p, ok := e.config.Store.(store.Prober); ok {
		if err := p.Probe(ctx); err != nil {
			return fmt.Errorf("checking the store: %w", err)
		}
	}

	if _, err := e.config.Store.Accounts(ctx, "", 1); err != nil {
		return fmt.Errorf("reading from the store: %w", err)
	}

	if err := e.readEpoch(ctx); err != nil {
		return fmt.Errorf("reading the epoch of the records: %w", err)
	}

	return nil
}

// countBacklog counts the due webhooks. A failed count, for example because it takes too long, stops no work:
// Health shows the age of the last one.
func (e *Engine) countBacklog(ctx context.Context) (did bool, err error) {
	if err := e.Deliverer.Count(ctx); err != nil && ctx.Err() == nil {
		e.config.Log.WarnContext(ctx, "the webhooks that are due were not counted", "error", err)
	}

	return false, nil
}

// A newest block is stale when it is older than staleBlocks times the time between blocks, and than staleFor.
// On Bitcoin one block in 65 million takes that long.
const (
	staleBlocks = 18
	staleFor    = time.Hour
)

// isStaleTip reports whether the newest block of a live network is stale; see health.Network.
func isStaleTip(n chain.Network, c scan.Cursor, now time.Time) bool {
	return n.Livemode && !c.Tip.Time.IsZero() &&
		now.Sub(c.Tip.Time) > max(staleBlocks*scanstate.LongestPace(c), staleFor)
}
