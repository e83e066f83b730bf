package sweep

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/settlement"
)

// What a settlement shows as fees is what final blocks hold now. A step whose block left the chain is counted anew with
// its next block, if there is one; until then its release is under way, and nothing else is planned at its address.

// takeBack takes back what a step cost and paid in a block that left the chain.
func (w *sweepUpdate) takeBack(ctx context.Context, step *settlement.Step) error {
	cost := step.NetworkFee
	w.setNetworkFee(step, chain.Amount{})

	if step.Kind == chain.StepSweep {
		if err := errors.Join(w.takeBackCarry(ctx), w.takeBackUnclaimed(ctx, step)); err != nil {
			return err
		}
	}

	if err := w.takeBackResidue(ctx, step, cost); err != nil {
		return err
	}

	if err := w.unpayFee(ctx, step); err != nil {
		return err
	}

	step.Recorded, w.release.Done = false, false

	return nil
}

// takeBackResidue takes back what a step left at its address, or took there.
func (w *sweepUpdate) takeBackResidue(ctx context.Context, step *settlement.Step, cost chain.Amount) error {
	if w.ofNative() && step.Kind != chain.StepSweep && sweptStep(w.release) != nil {
		return w.correctSwept(ctx, step, cost.Add(w.ownFee(step)), chain.Amount{})
	}

	if err := w.setResidue(ctx, step, chain.Amount{}, chain.Amount{}); err != nil {
		return err
	}

	return w.setTokenResidue(ctx, step, chain.Amount{}, chain.Amount{})
}

// isGivenUp reports whether the release goes on for nobody: it was abandoned while its fee was under way, or its
// settlements failed or left it.
func (w *sweepUpdate) isGivenUp() bool {
	return hasStep(w.release, chain.StepTopUp, wallet.Failed) ||
		hasStep(w.release, chain.StepFee, wallet.Failed) ||
		!slices.ContainsFunc(w.group, func(s settlement.Settlement) bool {
			return s.SweepID == w.release.ID &&
				(s.Status != settlement.Failed || isOrphaned(s) && s.FailedFor == "")
		})
}
