package sweep

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// proveMissing returns cause, funds_missing, if the address of a release held less than its deposits after the newest
// block that was read and no transaction of the address is under way, and fault.Unavailable otherwise: a node that
// lags or lies proves nothing, nor does a balance while a fork may have made dearer what others took.
func (p *planningRun) proveMissing(ctx context.Context, r chain.SweepRequest, cause error) error {
	held, err := p.outbox.BalanceRead(
		ctx, p.network.Slug, chain.Holding{Address: r.Deposit.Address, AssetID: r.Asset.ID},
	)
	if errors.Is(err, fault.Unsupported) {
		return cause
	}

	if err != nil {
		return err
	}

	needed := r.Amount
	if r.Asset.ID == p.native.ID {
		needed = r.Amount.SubFloor(r.Spent)
	}

	if held.Less(needed) {
		return p.missingAtRest(ctx, r.Deposit.Address, cause)
	}

	return fault.Wrap(
		cause,
		fault.Unavailable,
		"node_behind",
		"the node that planned a release from %s does not show its deposits, and the blocks that were read hold them",
		r.Deposit.Address,
	)
}

// missingAtRest returns cause, funds_missing, unless a transaction of the address is under way: a fork may have brought
// dearer bytes of it into a block, and what it cost more is owed at the address once that is recorded.
func (p *planningRun) missingAtRest(ctx context.Context, address chain.Address, cause error) error {
	live, err := p.db.LiveTransactions(ctx, p.network.Slug, address)
	if err != nil {
		return &storeError{err}
	}

	if len(live) == 0 {
		return cause
	}

	return fault.Wrap(
		cause,
		fault.Unavailable,
		"transactions_under_way",
		"%s holds less than its deposits, and what %s %s costs it is not known yet",
		address,
		live[0].Kind,
		live[0].ID,
	)
}

// failMissing fails settlements whose money is gone. Those whose wallets are frozen or not compared yet stay as
// they are, and so do those whose money a transaction took that is not on record, until a person says what it was.
func (p *planningRun) failMissing(ctx context.Context, g group) error { // spec 2.8.9
	master, err := p.masterOf(ctx, g)
	if err != nil {
		return err
	}

	var gone, waiting group

	for _, s := range g {
		why, err := p.walletWaits(ctx, master, group{s})

		waits := why != ""
		if err == nil && !waits {
			waits, err = p.awaitsPerson(ctx, master, s)
		}

		if err != nil {
			return err
		}

		if waits {
			waiting = append(waiting, s)
		} else {
			gone = append(gone, s)
		}
	}

	if len(waiting) > 0 {
		if err := p.postpone(ctx, waiting, waitsForPerson); err != nil {
			return err
		}
	}

	if len(gone) == 0 {
		return nil
	}

	return p.fail(ctx, gone, settlement.FundsMissing, nil)
}

// abandonMissing fails a release whose money is gone, unless one of its settlements waits for a person.
func (p *planningRun) abandonMissing(ctx context.Context, r settlement.Sweep, g group) error {
	if waits, err := p.anyAwaitsPerson(ctx, r.Master.Address, g); err != nil || waits {
		return errors.Join(err, p.postponeSweep(ctx, r))
	}

	return p.abandon(ctx, r, settlement.FundsMissing)
}

// masterOf returns the address of the master wallet that a group is swept to.
func (p *planningRun) masterOf(ctx context.Context, g group) (chain.Address, error) {
	settings, err := p.db.SettlementSettings(ctx, g[0].Owner.AccountID)
	if err != nil {
		return "", &storeError{err}
	}

	master, err := p.outbox.MasterWallet(ctx, p.network.Slug, settings.Index)

	return master.Address, err
}

// anyAwaitsPerson reports whether one of a group waits for a person.
func (p *planningRun) anyAwaitsPerson(ctx context.Context, master chain.Address, g group) (bool, error) {
	for _, s := range g {
		if waits, err := p.awaitsPerson(ctx, master, s); err != nil || waits {
			return waits, err
		}
	}

	return false, nil
}

// awaitsPerson reports whether a transaction that is not on record brought money of a settlement's asset from its
// address to the master wallet, and nobody has said yet whether it was the settlement's: one that was acknowledged
// as foreign without naming it counts for walletstate.ForeignFor, as with payouts.
func (p *planningRun) awaitsPerson(
	ctx context.Context,
	master chain.Address,
	s settlement.Settlement,
) (bool, error) {
	rows, err := p.db.UnrecordedOutgoing(
		ctx,
		s.Network,
		s.Deposit.Address,
		p.now().Add(-walletstate.ForeignFor),
	)
	if err != nil {
		return false, &storeError{err}
	}

	for _, row := range rows {
		var swept []chain.Output

		for _, t := range row.Transfers {
			if t.To == master && t.AssetID == s.AssetID {
				swept = append(swept, chain.Output{To: t.To, AssetID: t.AssetID, Amount: t.Amount})
			}
		}

		if !walletstate.Awaits(row, s.ID, swept, p.now()) {
			continue
		}

		p.config.Log.WarnContext(
			ctx, "a settlement waits for a person: a transaction that is not on record took its money; see "+
				"Engine.Acknowledge",
			"network", s.Network, "settlement", s.ID, "tx", row.TxHash,
		)
		p.persons.Store(s.ID, waitingForPerson{s, row.TxHash, p.now()})

		return true, nil
	}

	p.persons.Delete(s.ID)

	return false, nil
}

// waitingForPerson is a settlement whose money a transaction took that is not on record, as it was last looked at.
type waitingForPerson struct {
	of     settlement.Settlement
	txHash string
	at     time.Time
}

// Waiting returns the addresses of a network whose settlements wait for a person, one row for each settlement, or whose
// release waits for nodes to say the same, as this process saw them within the last two attempts to plan them.
func (s *Sweeper) Waiting(network string) (named []health.Wallet) {
	s.persons.Range(func(_, value any) bool {
		w := value.(waitingForPerson)
		if w.of.Network == network && s.now().Sub(w.at) < 2*longestBackoff {
			named = append(named, health.Wallet{
				Network:   network,
				Address:   string(w.of.Deposit.Address),
				AccountID: w.of.Owner.AccountID,
				Reason: "settlement " + w.of.ID + " waits for a person: transaction " + w.txHash +
					", which is not on record, took its money; see Engine.Acknowledge",
			})
		}

		return true
	})

	named = append(named, s.disputes.Since(network, s.now().Add(-2*longestBackoff))...)

	slices.SortFunc(named, func(a, b health.Wallet) int { return cmp.Compare(a.Reason, b.Reason) })

	return named
}
