package sweep

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
)

// release plans what waits at a place, and begins its release, holds it, or fails it.
func (p *planningRun) start(ctx context.Context, at releaseKey, due group) (began bool, err error) {
	waiting, err := p.candidates(ctx, at, due)
	if err != nil {
		return false, &storeError{err}
	}

	g, coins, err := p.releasable(ctx, eligible(waiting), due)
	if err != nil || len(g) == 0 {
		return false, err
	}

	settings, err := p.db.SettlementSettings(ctx, g[0].Owner.AccountID)
	if err != nil {
		return false, &storeError{err}
	}

	if g.belowMin(settings.SweepMinUSD) {
		return false, p.hold(ctx, g, settlement.BelowSweepMin, nil)
	}

	asset, ok := p.network.AssetByID(at.assetID)
	if !ok {
		return false, p.fail(ctx, g, settlement.NotReleasable)
	}

	master, err := p.outbox.Master(ctx, p.network.Slug, settings.Index)
	if err != nil {
		return false, err
	}

	if g[0].FeeSource == settlement.FromMaster {
		if err := p.refreshMaster(ctx, g[0].Owner, master); err != nil {
			return false, err
		}
	}

	carry, residue, err := p.carryAndResidue(ctx, g[0].Owner, g[0].Deposit.Address)
	if err != nil {
		return false, err
	}

	g = g.withResidueOwed(residue.Owed)
	r := settlement.Release{
		ID:            p.config.IDs.Next(),
		Owner:         g[0].Owner,
		Network:       p.network.Slug,
		AssetID:       asset.ID,
		Deposit:       g[0].Deposit,
		Master:        master,
		SettlementIDs: g.ids(),
		Amount:        g.gross(),
		FeeAddress:    p.config.FeeAddresses[p.network.Slug],
		ResidueIn:     residue.Amount,
		ResidueOut:    residue.Amount,
		CreatedAt:     p.now(),
	}

	steps, err := p.withFee(ctx, &r, g, coins, asset, carry.Amount)
	switch {
	case err == nil:
	case errors.Is(err, fault.Invalid):
		return false, p.fail(ctx, g, settlement.NotReleasable)
	case fault.Code(err) == "funds_missing":
		if p.now().Sub(g[len(g)-1].ConfirmedAt) < fundsGrace {
			return false, err
		}

		return false, p.fail(ctx, g, settlement.FundsMissing)
	case fault.Code(err) == "uneconomic":
		return false, p.hold(ctx, g, settlement.Uneconomic, nil)
	default:
		return false, err
	}

	if g.uneconomic(steps, p.native.Decimals) {
		return false, p.hold(ctx, g, settlement.Uneconomic, nil)
	}

	return p.storeRelease(ctx, g, r, steps, carry, residue)
}

// read reads the master wallet's balances, whose rows are made when they are not there yet.
func (p *planningRun) refreshMaster(ctx context.Context, owner event.Owner, master chain.Party) error {
	b, found, err := p.db.Balance(ctx, p.network.Slug, master.Address, p.native.ID)
	if err != nil {
		return &storeError{err}
	}

	if !found || b.Owner != owner {
		if err := p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
			return p.outbox.TrackTx(ctx, tx, owner, p.network.Slug, master)
		}); err != nil {
			return err
		}
	}

	return p.outbox.RefreshBalances(ctx, p.network.Slug, master)
}

// rows reads what is carried and what lies at the address beside the deposits.
func (p *planningRun) carryAndResidue(
	ctx context.Context,
	owner event.Owner,
	at chain.Address,
) (carry settlement.Carry, residue settlement.Residue, err error) {
	err = p.update(ctx, func(ctx context.Context, tx settlement.Tx) (err error) {
		if carry, err = tx.Carry(ctx, owner, p.network.Slug); err != nil {
			return err
		}

		residue, err = tx.Residue(ctx, p.network.Slug, at)

		return err
	})

	return carry, residue, err
}

// withFee plans a release with as much of the platform fee as makes sense: with what was carried so
// far; without it where the deposit cannot bear that much; without any where there is nobody to pay
// it to, or paying it costs more than it is.
func (p *planningRun) withFee(
	ctx context.Context,
	r *settlement.Release,
	g group,
	coins []chain.Coin,
	asset chain.Asset,
	carry chain.Amount,
) ([]chain.ReleaseStep, error) {
	r.Fee, r.CarryIn = g.fee().Add(carry), carry
	if r.FeeAddress == "" {
		r.Fee, r.CarryIn = chain.Amount{}, chain.Amount{}
	}

	steps, err := p.planSteps(ctx, r, g, coins, asset, nil)
	if fault.Code(err) == "uneconomic" && !r.CarryIn.IsZero() {
		r.Fee, r.CarryIn = g.fee(), chain.Amount{}
		steps, err = p.planSteps(ctx, r, g, coins, asset, nil)
	}

	if err == nil && notWorthSending(steps) {
		r.Fee, r.CarryIn = chain.Amount{}, chain.Amount{}
		steps, err = p.planSteps(ctx, r, g, coins, asset, nil)
	}

	if err == nil && paysFee(steps).IsZero() {
		// below the network's dust limit: the driver left it out
		r.Fee, r.CarryIn = chain.Amount{}, chain.Amount{}
	}

	return steps, err
}

// ask has the driver plan what is left of a release, and checks what it answers.
func (p *planningRun) planSteps(
	ctx context.Context,
	r *settlement.Release,
	g group,
	coins []chain.Coin,
	asset chain.Asset,
	done []chain.StepKind,
) ([]chain.ReleaseStep, error) {
	residue := r.ResidueIn
	if len(done) > 0 {
		residue = r.ResidueOut
	}

	order := chain.Release{
		Coins:      coins,
		Asset:      asset,
		Deposit:    r.Deposit,
		Master:     r.Master,
		FeeAddress: r.FeeAddress,
		Amount:     r.Amount,
		Fee:        r.Fee,
		Residue:    residue,
		Spent:      g.spent(),
		Done:       done,
		KeepOpen:   hasStep(r, chain.StepSweep, wallet.Failed), // it closed, or the release would have ended
	}

	steps, err := p.planner.PlanRelease(ctx, order)
	if err != nil {
		return nil, err
	}

	return steps, checkPlan(order, steps, p.native.ID)
}

// movable tells what of a group can be released now, and which coins hold it, in its order, where
// the network spends outputs. What is being bumped, or is not in the book of coins, must not keep
// the others waiting: what of it is due is put off, and what stays missing fails by itself.
func (p *planningRun) releasable(ctx context.Context, g, due group) (now group, coins []chain.Coin, err error) {
	if !p.spendsCoins || len(g) == 0 {
		return g, nil, nil
	}

	outputs, held, bumped, err := p.depositCoins(ctx, g)
	if err != nil {
		return nil, nil, err
	}

	var late, missing group

	for _, s := range g {
		at := outputs[s.PaymentID]

		c, ok := held[at]
		switch {
		case ok:
			now, coins = append(now, s), append(coins, c.Coin)
		case !bumped[at] && p.now().Sub(s.ConfirmedAt) >= fundsGrace:
			missing = append(missing, s)
		case slices.ContainsFunc(due, func(d settlement.Settlement) bool { return d.ID == s.ID }):
			late = append(late, s)
		}
	}

	if len(late) > 0 {
		if err := p.postpone(ctx, late); err != nil {
			return nil, nil, err
		}
	}

	if len(missing) > 0 {
		if err := p.fail(ctx, missing, settlement.FundsMissing); err != nil {
			return nil, nil, err
		}
	}

	return now, coins, nil
}

// coins returns the outputs that hold the deposits of a release under way, where the network has
// outputs. One that is not in the book, or spent, is fault.State with code funds_missing; one that
// is being bumped with code deposit_lifted.
func (p *planningRun) coinsOf(ctx context.Context, g group) ([]chain.Coin, error) {
	if !p.spendsCoins {
		return nil, nil
	}

	outputs, held, bumped, err := p.depositCoins(ctx, g)
	if err != nil {
		return nil, err
	}

	coins := make([]chain.Coin, 0, len(g))
	for _, s := range g {
		c, ok := held[outputs[s.PaymentID]]
		switch {
		case bumped[outputs[s.PaymentID]]:
			return nil, fault.New(
				fault.State, "deposit_lifted", "the output of payment %s is being lifted",
				s.PaymentID,
			)
		case !ok:
			return nil, fault.New(
				fault.State, "funds_missing",
				"the output of payment %s is not in the chain, or spent",
				s.PaymentID,
			)
		}

		coins = append(coins, c.Coin)
	}

	return coins, nil
}

// held reads which outputs paid a group, by payment id, and what holds their money now; see send.Held.
func (p *planningRun) depositCoins(
	ctx context.Context,
	g group,
) (outputs map[string]chain.Outpoint, held map[chain.Outpoint]wallet.Coin, bumped map[chain.Outpoint]bool, err error) {
	payments := make([]string, len(g))
	for i, s := range g {
		payments[i] = s.PaymentID
	}

	if outputs, err = p.config.Outputs(ctx, payments); err != nil {
		return nil, nil, nil, &storeError{err}
	}

	if held, bumped, err = txmgr.CoinsOfPayments(
		ctx, p.db, p.network.Slug, slices.Collect(maps.Values(outputs)),
	); err != nil {
		return nil, nil, nil, &storeError{err}
	}

	return outputs, held, bumped, nil
}

// begin stores a release with its first transaction, in one transaction. Money of the master wallet
// is reserved for the whole plan: for the first transaction in its own name, for the rest in the
// release's.
func (p *planningRun) storeRelease(
	ctx context.Context,
	g group,
	r settlement.Release,
	steps []chain.ReleaseStep,
	carry settlement.Carry,
	residue settlement.Residue,
) (began bool, err error) {
	required := allFromMaster(steps, r.Master.Address, p.native.ID)
	short := false

	err = p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		began, short = false, false

		fresh, err := p.lockUnchanged(ctx, tx, g)
		if err != nil || fresh == nil {
			return err
		}

		nowCarry, err := tx.Carry(ctx, r.Owner, r.Network)
		if err != nil {
			return err
		}

		if nowCarry.Amount != carry.Amount {
			return nil // planned on what is no longer so; the next run does better
		}

		if as, err := p.chargeResidue(ctx, tx, &r, fresh, residue); err != nil || !as {
			return err
		}

		if !required.IsZero() {
			b, _, err := tx.BalanceForUpdate(ctx, r.Network, r.Master.Address, p.native.ID)
			if err != nil {
				return err
			}

			if b.Available().Less(required) {
				short = true
				return nil
			}
		}

		r := r
		if err := p.enqueue(ctx, tx, &r, steps); err != nil {
			return err
		}

		for i := range fresh {
			if err := fresh[i].Assign(r.ID, r.Master.Address); err != nil {
				return err
			}

			fresh[i].RequiredNative = nil
			if !required.IsZero() {
				fresh[i].RequiredNative = &required
			}

			if err := tx.PutSettlements(ctx, &fresh[i]); err != nil {
				return err
			}
		}

		if !r.CarryIn.IsZero() {
			nowCarry.Amount = nowCarry.Amount.Sub(r.CarryIn)
			if err := tx.PutCarry(ctx, &nowCarry); err != nil {
				return err
			}
		}

		began = true

		return nil
	})
	if err == nil && short {
		return false, p.hold(ctx, g, settlement.InsufficientMasterBalance, &required)
	}

	return began, err
}

// bear books what the plan of a release counted on at its address: the residue, and that the oldest
// of its settlements bears what is owed there. as is false when that is no longer so.
func (p *planningRun) chargeResidue(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Release,
	g group,
	planned settlement.Residue,
) (as bool, err error) {
	now, err := tx.Residue(ctx, r.Network, r.Deposit.Address)
	if err != nil || now.Amount != planned.Amount || now.Owed != planned.Owed {
		return false, err
	}

	bearing := g.withResidueOwed(now.Owed)
	if bearing[0].NetworkFees == g[0].NetworkFees {
		return true, nil
	}

	g[0].NetworkFees, now.Owed = bearing[0].NetworkFees, chain.Amount{}
	if err := tx.PutSettlements(ctx, &g[0]); err != nil {
		return false, err
	}

	return true, tx.PutResidue(ctx, &now)
}

// enqueue puts the first of the steps into the outbox and stores the release with it.
func (p *planningRun) enqueue(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Release,
	steps []chain.ReleaseStep,
) error {
	first := steps[0]

	t, err := p.outbox.EnqueueTx(ctx, tx, wallet.Transaction{
		Owner:    r.Owner,
		Network:  r.Network,
		Kind:     kindOf(first.Kind),
		ObjectID: r.ID,
		Order:    first.Order,
		GiveUpAt: p.now().Add(p.config.SignWithin),
	})
	if err != nil {
		return err
	}

	r.Steps = append(
		slices.Clip(r.Steps),
		settlement.Step{Kind: first.Kind, TransactionID: t.ID, State: t.State, PaysFee: first.PaysFee},
	)

	r.DueAt = time.Time{}
	if err := tx.PutRelease(ctx, r); err != nil {
		return err
	}

	rest := allFromMaster(steps[1:], r.Master.Address, p.native.ID)
	now := fromMaster(first, r.Master.Address, p.native.ID)
	// The rest first: on the way through a plan it shrinks, and frees what the transaction then takes.
	if err := p.outbox.ReserveTx(
		ctx, tx, r.Owner, r.Network, r.Master.Address, p.native.ID, r.ID, rest,
	); err != nil {
		return err
	}

	return p.outbox.ReserveTx(ctx, tx, r.Owner, r.Network, r.Master.Address, p.native.ID, t.ID, now)
}

func kindOf(step chain.StepKind) wallet.Kind {
	switch step {
	case chain.StepTopUp:
		return wallet.TopUp
	case chain.StepFee:
		return wallet.Fee
	default:
		return wallet.Sweep
	}
}

// fresh returns the group as it is stored now, locked, or nil when any of it was moved since it was planned.
func (p *planningRun) lockUnchanged(ctx context.Context, tx settlement.Tx, g group) (group, error) {
	now, err := tx.SettlementsByID(ctx, g.ids())
	if err != nil {
		return nil, err
	}

	if len(now) != len(g) || slices.ContainsFunc(now, func(s settlement.Settlement) bool {
		i := slices.IndexFunc(g, func(planned settlement.Settlement) bool { return planned.ID == s.ID })
		return i < 0 || g[i].Version != s.Version
	}) {
		return nil, nil
	}

	return now, nil
}

// hold keeps a group back; an event is told when the reason is new.
func (p *planningRun) hold(
	ctx context.Context,
	g group,
	reason settlement.Reason,
	required *chain.Amount,
) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		fresh, err := p.lockUnchanged(ctx, tx, g)
		if err != nil {
			return err
		}

		for i := range fresh {
			s := &fresh[i]

			told, err := s.Hold(reason, required, p.now(), nextCheck(reason, p.now()))
			if err != nil {
				return err
			}

			if told {
				err = p.putTx(ctx, tx, s, event.SettlementHeld)
			} else {
				err = tx.PutSettlements(ctx, s)
			}

			if err != nil {
				return err
			}
		}

		return nil
	})
}

// fail ends a group that cannot be released as it stands.
func (p *planningRun) fail(ctx context.Context, g group, reason settlement.Reason) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		fresh, err := p.lockUnchanged(ctx, tx, g)
		if err != nil {
			return err
		}

		for i := range fresh {
			if err := fresh[i].Fail(reason, p.now(), time.Time{}); err != nil {
				return err
			}

			if err := p.putTx(ctx, tx, &fresh[i], event.SettlementFailed); err != nil {
				return err
			}
		}

		return nil
	})
}
