package sweep

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Gas that becomes dearer between signature and block has a sweep run out of it: it moved nothing and cost its fee. The
// release is planned again at the new price. One that its contract refused is given up.

// maxSweeps is how many sweeps of a release may run out of gas before it is given up.
const maxSweeps = 3

// gasReader returns the driver of a network as one that knows what ran out of gas; nil where it does not.
func (s *Sweeper) gasReader(network string) chain.GasReader {
	driver, err := s.registry.Driver(network)
	if err != nil {
		return nil
	}

	reader, _ := driver.(chain.GasReader)

	return reader
}

// mayLackGas reports whether a reverted sweep of the release may have run out of gas, and may be made again.
func (w *sweepUpdate) mayLackGas() bool {
	failed := 0

	for _, step := range w.release.Steps {
		if step.Kind == chain.StepSweep && step.State == wallet.Failed {
			failed++
		}
	}

	return failed < maxSweeps && w.gasReader(w.release.Network) != nil
}

// endRefused ends a release whose last sweep a contract reverted for another reason than its gas. over is false where
// the release goes on.
func (p *planningRun) endRefused(ctx context.Context, r settlement.Sweep) (over bool, err error) {
	step, reader := lastStep(&r), p.gasReader(r.Network)
	if reader == nil || step == nil || step.Kind != chain.StepSweep || step.State != wallet.Failed {
		return false, nil
	}

	t, err := p.db.Transaction(ctx, step.TransactionID)
	if err != nil {
		return true, &storeError{err}
	}

	attempt := walletstate.AttemptIndex(&t, t.TxHash)
	if t.Failure != wallet.FailReverted || t.Order.Close || attempt < 0 {
		return false, nil
	}

	ranOut, err := reader.RanOutOfGas(ctx, t.Attempts[attempt].Signed)

	switch {
	case err != nil:
		return true, errors.Join(err, p.postponeSweep(ctx, r))
	case !ranOut:
		return true, p.abandon(ctx, r, settlement.TransactionFailed)
	}

	p.config.Log.InfoContext(
		ctx, "a sweep ran out of gas and is planned again",
		"network", r.Network, "release", r.ID, "tx", t.TxHash,
	)

	return false, nil
}

// gasOf returns what of the residue at the address of a release of a token may pay for its gas, in native base units.
// What a release of native coin that is stalled there bears is no coin: a fork took back what others had taken.
func (p *planningRun) gasOf(
	ctx context.Context,
	r *settlement.Sweep,
	residue chain.Amount,
) (chain.Amount, error) {
	if residue.IsZero() || r.AssetID == p.native.ID || p.spendsCoins {
		return residue, nil
	}

	live, err := p.db.SweepsAt(ctx, r.Network, []chain.Address{r.Deposit.Address})
	if err != nil {
		return chain.Amount{}, &storeError{err}
	}

	for _, other := range live {
		if other.AssetID == p.native.ID {
			residue = residue.SubFloor(other.Owed)
		}
	}

	return residue, nil
}
