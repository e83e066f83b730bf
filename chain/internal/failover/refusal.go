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
	var (
		first    N
		accepted bool
		agreed   error
	)

	err := s.Ask(ctx, attempts, need, func(ctx context.Context, node N) error {
		first = node
		return call(ctx, node)
	})
	if err == nil || !isAnswer(err) {
		return err
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
		return err
	case agreed != nil:
		return agreed
	}

	mayChange := func(refusal error) bool { return !errors.Is(refusal, fault.Invalid) }

	return refusals[max(0, slices.IndexFunc(refusals, mayChange))]
}
