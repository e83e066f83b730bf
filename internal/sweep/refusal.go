package sweep

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
)

// A node says that a deposit cannot be released, by an estimate of its own. One that lies or lags says it too, so the
// driver asks another one, and a refusal stands only when it lasts.

// refusalGrace is how long after the first refusal a release is planned again before its settlements fail.
const refusalGrace = 15 * time.Minute

// askPlan returns the driver's plan, checked by checkPlan. A release of which nodes say different things is named by
// Waiting.
func (p *planningRun) askPlan(ctx context.Context, order chain.SweepRequest) ([]chain.SweepStep, error) {
	steps, err := p.checkedPlan(ctx, order)

	w := health.Wallet{
		Network:   p.network.Slug,
		Address:   string(order.Deposit.Address),
		AccountID: p.accountID,
	}
	if err != nil {
		w.Reason = "a release of " + order.Asset.Symbol + " waits: " + err.Error()
	}

	p.disputes.Note(sweepKey{address: order.Deposit.Address, assetID: order.Asset.ID}, err, w, p.now())

	return steps, err
}

func (p *planningRun) checkedPlan(ctx context.Context, order chain.SweepRequest) ([]chain.SweepStep, error) {
	steps, err := p.planner.PlanSweep(ctx, order)
	if err != nil {
		return nil, err
	}

	var sellers []chain.Address
	if buyer, ok := p.planner.(chain.EnergyBuyer); ok {
		sellers = buyer.EnergySellers()
	}

	return steps, checkPlan(order, steps, p.native.ID, sellers)
}

// refusalStands returns nil when a release was refused whenever it was planned in the last refusalGrace, and the last
// block that was read is agreed on. Until then it returns fault.Unavailable. id is of the settlement
// or the release.
func (p *planningRun) refusalStands(ctx context.Context, id string, cause error) error {
	first, _ := p.refusals.LoadOrStore(id, p.now())

	waits := fault.Wrap(
		cause,
		fault.Unavailable,
		"release_refused",
		"a node of %s refuses a release: it is planned again until %s have passed",
		p.network.Slug,
		refusalGrace,
	)
	if p.now().Sub(first.(time.Time)) < refusalGrace {
		return waits
	}

	driver, err := p.registry.Driver(p.network.Slug)
	if err != nil {
		return err
	}

	if agreed, ok := driver.(chain.Agreed); ok {
		cursor, followed, err := p.db.Cursor(ctx, p.network.Slug)
		if err != nil {
			return &storeError{err}
		}

		if followed {
			if _, err := agreed.AgreedBlock(ctx, cursor.At, nil); err != nil {
				return waits
			}
		}
	}

	p.refusals.Delete(id)

	return nil
}
