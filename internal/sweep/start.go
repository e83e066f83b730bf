package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// start plans what waits under a release key, and stores a release of it, holds it, or fails it.
func (p *planningRun) start(ctx context.Context, at sweepKey, due group) (began bool, err error) {
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
		return false, p.fail(ctx, g, settlement.NotReleasable, fault.New(
			fault.Unsupported,
			"asset_unknown",
			"asset %s is not served on %s any more",
			at.assetID,
			p.network.Slug,
		))
	}

	master, err := p.outbox.MasterWallet(ctx, p.network.Slug, settings.Index)
	if err != nil {
		return false, err
	}

	if g, coins, err = p.payingInputs(ctx, g, coins); err != nil || len(g) == 0 {
		return false, err
	}

	g, coins, rest := g.largest(coins)

	if why, err := p.walletWaits(ctx, master.Address, g); err != nil || why != "" {
		return false, errors.Join(err, p.postpone(ctx, g, why))
	}

	if g[0].FeeSource == settlement.FromMaster {
		if err := p.refreshMaster(ctx, g[0].Owner, master); err != nil {
			return false, err
		}
	}

	g, carry, residue, err := p.plannable(ctx, g, asset, master)
	if err != nil || len(g) == 0 {
		return false, err
	}

	r := p.newSweep(g, asset, master, residue)
	if r.ResidueIn, err = p.gasOf(ctx, &r, r.ResidueIn); err != nil {
		return false, err
	}

	steps, err := p.withFee(ctx, &r, g, coins, asset, carry.Amount)
	if fault.Code(err) == "uneconomic" {
		return false, p.holdUneconomic(ctx, append(g, rest...))
	}

	if err != nil {
		return false, p.holdOrFail(ctx, g, err)
	}

	p.refusals.Delete(g[0].ID)

	if g.uneconomic(steps, leftOf(r), p.native.Decimals, p.nativePrice(ctx, g)) {
		return false, p.holdUneconomic(ctx, append(g, rest...))
	}

	return p.storeSweep(ctx, g, r, steps, carry, residue)
}

// newSweep returns a release of the whole group that has no steps and no fee yet.
func (p *planningRun) newSweep(
	g group,
	asset chain.Asset,
	master chain.Party,
	residue residues,
) settlement.Sweep {
	return settlement.Sweep{
		ID:            p.config.IDs.Next(),
		Owner:         g[0].Owner,
		Network:       p.network.Slug,
		AssetID:       asset.ID,
		Deposit:       g[0].Deposit,
		Master:        master,
		SettlementIDs: g.ids(),
		Amount:        g.gross(),
		FeeAddress:    p.config.FeeAddresses[p.network.Slug],
		ResidueIn:     residue.native.Amount,
		ResidueOut:    residue.native.Amount,
		Owed:          residue.asset.Owed,
		Claims:        residue.asset.Unclaimed,
		CreatedAt:     p.now(),
	}
}

// refreshMaster reads the master wallet's balances from the chain. It creates their rows where they
// are missing.
func (p *planningRun) refreshMaster(ctx context.Context, owner event.Owner, master chain.Party) error {
	b, found, err := p.db.Balance(ctx, p.network.Slug, master.Address, p.native.ID)
	if err != nil {
		return &storeError{err}
	}

	if !found || b.Owner != owner {
		err := p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
			return p.outbox.TrackTx(ctx, tx, owner, p.network.Slug, master)
		})
		if err != nil {
			return err
		}
	}

	return p.outbox.RefreshBalances(ctx, p.network.Slug, master)
}

// residues are what is on record at an address beside its deposits: of native coin, which pays for gas, and of the
// asset of a release.
type residues struct{ native, asset settlement.TokenResidue }

// isSame reports whether two residues of an asset are the same.
func isSame(a, b settlement.TokenResidue) bool {
	return a.Amount == b.Amount && a.Owed == b.Owed && slices.Equal(a.Unclaimed, b.Unclaimed)
}

// carryAndResidue reads the owner's carry and the residue of an asset at an address.
func (p *planningRun) carryAndResidue(
	ctx context.Context,
	owner event.Owner,
	at chain.Address,
	assetID string,
) (carry settlement.CarriedFee, residue residues, err error) {
	carry, _, err = p.db.Carry(ctx, owner, p.network.Slug)
	if err != nil {
		return carry, residue, &storeError{err}
	}

	row, _, err := p.db.Residue(ctx, p.network.Slug, at)
	if err != nil {
		return carry, residue, &storeError{err}
	}

	rows, err := p.db.UnrecordedOutgoing(ctx, p.network.Slug, at, time.Time{})
	if err != nil {
		return carry, residue, &storeError{err}
	}

	residue.native = lessForeign(row, rows, p.native.ID, p.native.ID)
	residue.asset = p.claimable(lessForeign(row, rows, assetID, p.native.ID))

	return carry, residue, nil
}

// lockResidues locks and returns the residues at an address.
func (p *planningRun) lockResidues(
	ctx context.Context,
	tx settlement.Tx,
	at chain.Address,
	assetID string,
) (out residues, err error) {
	if out.native, err = residueAt(ctx, tx, p.network, at, p.native.ID); err != nil {
		return out, err
	}

	out.asset, err = residueAt(ctx, tx, p.network, at, assetID)
	out.asset = p.claimable(out.asset)

	return out, err
}

// claimable returns a residue with what a release of its address may claim. Where coins are spent nothing is: a sweep
// that stands spent the coin of a payment, which will be seen in its block again.
func (p *planningRun) claimable(of settlement.TokenResidue) settlement.TokenResidue {
	if p.spendsCoins {
		of.Unclaimed = nil
	}

	return of
}

// storeSweep stores a release with its first transaction, in one transaction. It returns false
// when the plan is out of date; the next run plans anew.
//
// The master wallet's money is reserved for the whole plan: for the first transaction under its own
// id, for the rest under the release's.
func (p *planningRun) storeSweep(
	ctx context.Context,
	g group,
	r settlement.Sweep,
	steps []chain.SweepStep,
	carry settlement.CarriedFee,
	residue residues,
) (began bool, err error) {
	required := allFromMaster(steps, r.Master.Address, p.native.ID)
	short := false

	err = p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		began, short = false, false

		fresh, nowCarry, err := p.lockPlanned(ctx, tx, g, &r, carry, residue)
		if err != nil || fresh == nil {
			return err
		}

		if !required.IsZero() {
			b, _, err := tx.BalanceForUpdate(ctx, r.Network, r.Master.Address, p.native.ID)
			if err != nil {
				return err
			}

			if b.Available().Less(required) { // spec 2.8.5
				short = true
				return nil
			}
		}

		r := r
		if err := p.enqueue(ctx, tx, &r, steps); err != nil {
			return err
		}

		if err := assign(ctx, tx, fresh, &r, required); err != nil {
			return err
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

// lockPlanned locks and returns the group and the carry that a release was planned on, and charges
// the residue owed. The group is nil when any of them changed since.
func (p *planningRun) lockPlanned(
	ctx context.Context,
	tx settlement.Tx,
	g group,
	r *settlement.Sweep,
	carry settlement.CarriedFee,
	residue residues,
) (group, settlement.CarriedFee, error) {
	fresh, err := p.lockUnchanged(ctx, tx, g)
	if err != nil || fresh == nil {
		return nil, settlement.CarriedFee{}, err
	}

	// A release that takes none of the carry neither reads nor locks it: all of an account share it.
	if !r.CarryIn.IsZero() {
		now, err := lockCarry(ctx, tx, r.Owner, r.Network)
		if err != nil || now.Amount != carry.Amount {
			return nil, settlement.CarriedFee{}, err
		}

		carry = now
	}

	unchanged, err := p.chargeResidue(ctx, tx, r, residue)
	if err != nil || !unchanged {
		return nil, settlement.CarriedFee{}, err
	}

	return fresh, carry, nil
}

// assign puts the group into its release and stores it. required is what the master wallet must
// hold, in native base units; 0 when the plan takes nothing from it.
func assign(
	ctx context.Context,
	tx settlement.Tx,
	g group,
	r *settlement.Sweep,
	required chain.Amount,
) error {
	for i := range g {
		if err := settlementstate.Assign(&g[i], r.ID, r.Master.Address); err != nil {
			return err
		}

		g[i].RequiredNative = nil
		if !required.IsZero() {
			g[i].RequiredNative = &required
		}

		if err := tx.PutSettlements(ctx, &g[i]); err != nil {
			return err
		}
	}

	return nil
}

// chargeResidue takes what a release bears off the row of its address. unchanged is false when the residue is not the
// planned one any more; then nothing is written.
func (p *planningRun) chargeResidue(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	planned residues,
) (unchanged bool, err error) {
	now, err := p.lockResidues(ctx, tx, r.Deposit.Address, r.AssetID)
	if err != nil || !isSame(now.native, planned.native) || !isSame(now.asset, planned.asset) {
		return false, err
	}

	if err := addResidue(
		ctx, tx, p.network, r.Deposit.Address, r.AssetID, now.asset.Owed, chain.Amount{},
	); err != nil {
		return false, err
	}

	return true, changeUnclaimed(
		ctx,
		tx,
		r,
		p.native.ID,
		func(unclaimed []settlement.Brought) []settlement.Brought {
			return lessBrought(unclaimed, now.asset.Unclaimed...)
		},
	)
}

// enqueue queues the first of the steps in the outbox, and stores the release with it.
func (p *planningRun) enqueue(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	steps []chain.SweepStep,
) error {
	first := steps[0]

	t, err := p.outbox.EnqueueTx(ctx, tx, wallet.Transaction{
		Owner:    r.Owner,
		Network:  r.Network,
		Kind:     kindOf(first.Kind),
		ObjectID: r.ID,
		Order:    first.Order,
		GiveUpAt: p.now().Add(p.signWithin(first.Kind)),
	})
	if err != nil {
		return err
	}

	r.Steps = append(
		slices.Clip(r.Steps),
		settlement.Step{Kind: first.Kind, TransactionID: t.ID, State: t.State, PaysFee: first.PaysFee},
	)

	if err := p.putSweep(ctx, tx, r); err != nil {
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
	case chain.StepDelegate:
		return wallet.Delegate
	case chain.StepFee:
		return wallet.Fee
	default:
		return wallet.Sweep
	}
}
