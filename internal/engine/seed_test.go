package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// depositAt makes a deposit address through an engine of a seed.
func depositAt(t *testing.T, st store.Store, seed uint64, network *sim.Chain, accountID string) (
	*Engine, invoice.DepositAddress, error,
) {
	t.Helper()

	e := newEngine(t, map[string]string{"SIM/USD": "1"}, Config{
		Store:   st,
		Drivers: []chain.Driver{network},
		Signer:  sim.NewSigner(seed, nil),
	})

	if accountID == "" {
		a, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
		if err != nil {
			t.Fatal(err)
		}

		accountID = a.ID
	}

	d, err := e.Invoices.CreateDeposit(t.Context(), invoice.DepositParams{
		Owner:   event.Owner{AccountID: accountID, Livemode: network.Network().Livemode},
		Network: network.Network().Slug,
	})

	return e, d, err
}

// A signer of another seed neither runs nor steps, and shows no address: the next payment would go to a key that the
// service does not have.
func TestAnotherSeedIsRefused(t *testing.T) {
	st, network := memory.New(), sim.New(sim.Config{})

	e, made, err := depositAt(t, st, 1, network, "")
	if err != nil {
		t.Fatal(err)
	}

	if _, err := e.Step(t.Context()); err != nil {
		t.Fatalf("the seed that made the address: %v", err)
	}

	other, _, err := depositAt(t, st, 2, network, made.Owner.AccountID)
	if fault.Code(err) != "signer_mismatch" || !errors.Is(err, fault.Unavailable) {
		t.Errorf("an address by another seed: %v", err)
	}

	_, stepErr := other.Step(t.Context())
	for what, err := range map[string]error{"Step": stepErr, "Run": other.Run(t.Context())} {
		if fault.Code(err) != "signer_mismatch" {
			t.Errorf("%s with another seed: %v", what, err)
			continue
		}

		for _, named := range []string{"the addresses of sim/test", "for key sim/test/", "the records have sim1"} {
			if !strings.Contains(err.Error(), named) {
				t.Errorf("%s does not name %s: %v", what, named, err)
			}
		}
	}

	if other.maySign() {
		t.Error("another seed may sign")
	}

	if again, _, err := depositAt(t, st, 1, network, made.Owner.AccountID); err != nil {
		t.Errorf("the right seed again: %v", err)
	} else if _, err := again.Step(t.Context()); err != nil {
		t.Errorf("a step of the right seed: %v", err)
	}
}
