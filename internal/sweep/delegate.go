package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/settlement"
)

// The time that a delegation may wait for its signature before the release is topped up instead, and the one that its
// end may wait. Stake that other releases use comes back within minutes, what was used of its energy within a day.
const (
	delegateWithin   = 5 * time.Minute
	undelegateWithin = 24 * time.Hour
)

// undelegateAgain is when an end that the signer refused, or that waited too long, is made anew. Health names it
// meanwhile.
const undelegateAgain = 6 * time.Hour

// signWithin returns how long a step may wait for its signature.
func (s *Sweeper) signWithin(kind chain.StepKind) time.Duration {
	if kind == chain.StepDelegate {
		return min(delegateWithin, s.config.SignWithin)
	}

	return s.config.SignWithin
}

// undelegateAll queues the transactions that take back what a release delegated, when it is over. They are stored with
// the release: a delegation is taken back once, whenever the process ends.
func (s *Sweeper) undelegateAll(ctx context.Context, tx settlement.Tx, r *settlement.Sweep) error {
	if !r.Done {
		return nil
	}

	for i, step := range r.Steps {
		if step.Kind != chain.StepDelegate || step.State != wallet.Confirmed || step.UndelegationID != "" {
			continue
		}

		id, err := s.undelegate(ctx, tx, r, step)
		if err != nil {
			return err
		}

		r.Steps = slices.Clone(r.Steps)
		r.Steps[i].UndelegationID = id
	}

	return nil
}

// undelegate queues the transaction that takes back what a step delegated, and returns its id; none for one that bought
// energy.
func (s *Sweeper) undelegate(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	step settlement.Step,
) (id string, err error) {
	delegation, err := tx.Transaction(ctx, step.TransactionID)
	if err != nil {
		return "", err
	}

	if !chaindata.EnergyPrice(delegation.Order).IsZero() {
		return "", nil // its energy was bought
	}

	order := chain.Order{From: delegation.Order.From, MaxFee: delegation.Order.MaxFee}
	for _, output := range delegation.Order.Outputs {
		output.AssetID = chaindata.UndelegateEnergy
		order.Outputs = append(order.Outputs, output)
	}

	t, err := s.outbox.EnqueueTx(ctx, tx, wallet.Transaction{
		Owner:    r.Owner,
		Network:  r.Network,
		Kind:     wallet.Undelegate,
		ObjectID: step.TransactionID,
		Order:    order,
		GiveUpAt: s.now().Add(undelegateWithin),
	})

	return t.ID, err
}

// undelegateLater queues the end of a delegation once more, for later.
func (s *Sweeper) undelegateLater(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	step settlement.Step,
) (id string, err error) {
	if id, err = s.undelegate(ctx, tx, r, step); err != nil {
		return "", err
	}

	t, err := tx.Transaction(ctx, id)
	if err != nil {
		return "", err
	}

	t.DueAt = s.now().Add(undelegateAgain)
	t.GiveUpAt = t.DueAt.Add(undelegateWithin)

	return id, tx.PutTransaction(ctx, &t)
}

// undelegatedTx has the step of a delegation show what its end costs in the block that holds it. One that failed is
// made anew, later where nobody signed it, unless there is nothing to take back.
func (s *Sweeper) undelegatedTx(ctx context.Context, tx settlement.Tx, t wallet.Transaction) error {
	delegation, err := tx.Transaction(ctx, t.ObjectID)
	if errors.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	w, i, err := s.sweepUpdateOf(ctx, tx, delegation)
	if err != nil || w == nil {
		return err
	}

	step := &w.release.Steps[i]
	before, after := w.setCost(step, t)
	changed := before != after

	if t.State == wallet.Failed && step.UndelegationID == t.ID {
		again, err := s.undelegateAfter(ctx, tx, w.release, *step, t)
		if err != nil {
			return err
		}

		changed = changed || again != t.ID
		step.UndelegationID = again
	}

	if !changed {
		return nil
	}

	return w.save(ctx)
}

// undelegateAfter returns the end of a delegation that follows one that failed: the same where there is nothing to take
// back, one that is due later where nobody signed it, else none: it is queued with the release.
func (s *Sweeper) undelegateAfter(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	step settlement.Step,
	failed wallet.Transaction,
) (id string, err error) {
	notSigned := failed.Failure == wallet.FailStale ||
		strings.HasPrefix(failed.Failure, wallet.FailSignerRefused)
	if !notSigned && failed.Failure != wallet.FailNotPayable {
		return "", nil
	}

	s.config.Log.ErrorContext(
		ctx, "a delegation of energy was not taken back",
		"network", failed.Network, "from", failed.Order.From.Address, "to", failed.Order.Outputs[0].To,
		"stake", failed.Order.Outputs[0].Amount, "failure", failed.Failure, "again", notSigned,
	)

	if !notSigned {
		return failed.ID, nil
	}

	return s.undelegateLater(ctx, tx, r, step)
}

// unreserveStep returns what was reserved of the master wallet for a step that will not be.
func (w *sweepUpdate) unreserveStep(ctx context.Context, step *settlement.Step) error {
	return w.outbox.UnreserveTx(
		ctx, w.tx, w.release.Network, w.release.Master.Address, w.nativeID(), step.TransactionID,
	)
}
