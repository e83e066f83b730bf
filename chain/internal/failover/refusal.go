package failover

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/fault"
)

// AskRefusable is Ask for what a node may refuse: another one that answers has to refuse with the same code. One that
// does not refuse decides. Where only one node answers its refusal counts. Of refusals with different codes one that
// may change (not fault.Invalid) is returned.
//
// No block proves what a node says of an account, and a refusal is published as final.
func (s *Set[N]) AskRefusable(
	ctx context.Context,
	attempts int,
	need uint64,
	call func(context.Context, N) error,
) error {
	_, err := s.askRefusable(ctx, attempts, need, call)

	return err
}

// AskFinal is AskRefusable for a refusal that fails what was asked for: where several nodes are configured and one
// alone answers, its refusal of the kinds fault.State, fault.Invalid and fault.Stopped is fault.Unavailable
// (node_unavailable).
func (s *Set[N]) AskFinal(
	ctx context.Context,
	attempts int,
	need uint64,
	call func(context.Context, N) error,
) error {
	refusedBy, err := s.askRefusable(ctx, attempts, need, call)

	final := errors.Is(err, fault.State) || errors.Is(err, fault.Invalid) || errors.Is(err, fault.Stopped)
	if refusedBy == 1 && len(s.Nodes) > 1 && final {
		return fault.New(
			fault.Unavailable,
			"node_unavailable",
			"network %s has no second node that says: %v",
			s.Network,
			err,
		)
	}

	return err
}

// askRefusable is AskRefusable, which also returns how many nodes refused.
func (s *Set[N]) askRefusable(
	ctx context.Context,
	attempts int,
	need uint64,
	call func(context.Context, N) error,
) (refusedBy int, err error) {
	var (
		first    N
		accepted bool
		agreed   error
	)

	err = s.Ask(ctx, attempts, need, func(ctx context.Context, node N) error {
		first = node
		return call(ctx, node)
	})
	if err == nil || !isAnswer(err) {
		return 0, err
	}

	refusals := []error{err}

	err = s.AskBeside(ctx, first, need, func(ctx context.Context, node N) (enough bool, err error) {
		err = call(ctx, node)
		accepted = err == nil

		if accepted || !isAnswer(err) {
			return accepted, err
		}

		if slices.ContainsFunc(
			refusals,
			func(said error) bool { return fault.Code(said) == fault.Code(err) },
		) {
			agreed = err
		}

		refusals = append(refusals, err)

		return agreed != nil, nil
	})

	switch {
	case err != nil || accepted:
		return 0, err
	case agreed != nil:
		return len(refusals), agreed
	}

	mayChange := func(refusal error) bool { return !errors.Is(refusal, fault.Invalid) }

	return len(refusals), refusals[max(0, slices.IndexFunc(refusals, mayChange))]
}
