package sweep

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file answers questions about a settlement.Sweep.

func lastStep(r *settlement.Sweep) *settlement.Step {
	if len(r.Steps) == 0 {
		return nil
	}

	return &r.Steps[len(r.Steps)-1]
}

// isRunning reports whether a transaction of the release may still be included.
func isRunning(r *settlement.Sweep) bool {
	return slices.ContainsFunc(
		r.Steps,
		func(s settlement.Step) bool { return s.State != wallet.Confirmed && s.State != wallet.Failed },
	)
}

// isStarted reports whether any transaction of the release was ever signed.
func isStarted(r *settlement.Sweep) bool {
	return slices.ContainsFunc(r.Steps, func(s settlement.Step) bool { return s.TxHash != "" })
}

func hasStep(r *settlement.Sweep, kind chain.StepKind, states ...wallet.State) bool {
	return slices.ContainsFunc(r.Steps, func(s settlement.Step) bool {
		return s.Kind == kind && (len(states) == 0 || slices.Contains(states, s.State))
	})
}

func isSwept(r *settlement.Sweep) bool { return hasStep(r, chain.StepSweep, wallet.Confirmed) }

// hasLiveSweep reports whether a sweep was made that has not failed.
func hasLiveSweep(r *settlement.Sweep) bool {
	return slices.ContainsFunc(
		r.Steps,
		func(s settlement.Step) bool { return s.Kind == chain.StepSweep && s.State != wallet.Failed },
	)
}

// hasLiveFee reports whether a transaction that pays the platform fee was made and has not failed.
func hasLiveFee(r *settlement.Sweep) bool {
	return slices.ContainsFunc(
		r.Steps, func(s settlement.Step) bool { return !s.PaysFee.IsZero() && s.State != wallet.Failed },
	)
}

// confirmedKinds returns the kinds of the confirmed steps, and of a delegation that failed.
func confirmedKinds(r *settlement.Sweep) []chain.StepKind {
	var kinds []chain.StepKind

	for _, s := range r.Steps {
		if s.State == wallet.Confirmed || s.Kind == chain.StepDelegate && s.State == wallet.Failed {
			kinds = append(kinds, s.Kind)
		}
	}

	return kinds
}

// totalNetworkFees returns the network fees of the release's transactions and of those that displaced
// some of them, in native base units.
func totalNetworkFees(r *settlement.Sweep) (sum chain.Amount) {
	for _, s := range r.Steps {
		sum = sum.Add(s.NetworkFee)
		for _, c := range s.Displaced {
			sum = sum.Add(c.NetworkFee)
		}
	}

	return sum
}
