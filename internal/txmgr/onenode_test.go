package txmgr_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// oneNodeAnswers is a network of which one of several nodes answers for balances.
type oneNodeAnswers struct{ *sim.Chain }

func (c oneNodeAnswers) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	amounts, err := c.Chain.Balances(ctx, at, holdings)
	if err != nil {
		return nil, err
	}

	alone := &chain.UnreadableError{Network: c.Network().Slug}
	for i, holding := range holdings {
		alone.Holdings = append(alone.Holdings, chain.UnreadableHolding{
			Holding: holding,
			Index:   i,
			Err: fault.Wrap(
				chain.ErrNotAgreed,
				fault.Unavailable,
				"nodes_missing",
				"one node alone answers",
			),

			Provisional: true,
		})
	}

	return amounts, alone
}

// What one of several nodes says alone of a balance proves nothing; the stored balances of wallets follow it.
func TestBalanceOfOneNodeAloneProvesNothing(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.driver = func() chain.Driver { return oneNodeAnswers{w.chain} }
	w.outbox = w.boot("one")

	master, native := w.master(), w.asset("SIM").ID

	held, err := w.outbox.BalanceRead(
		t.Context(), network, chain.Holding{Address: master.Address, AssetID: native},
	)
	if !errors.Is(err, fault.Unavailable) {
		t.Errorf("the balance is %s, %v; want fault.Unavailable", held, err)
	}

	if err := w.outbox.RefreshBalances(t.Context(), network, master); err != nil {
		t.Fatal(err)
	}

	b, _, err := w.store.Balance(t.Context(), network, master.Address, native)
	if err != nil || b.OnChain != coin(100) {
		t.Errorf("the balance on record is %s, %v; want %s", b.OnChain, err, coin(100))
	}
}
