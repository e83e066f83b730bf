package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// requestKey marks the context of a request.
type requestKey struct{}

// hsm is a signer that gives one public key at a time, and counts those that a request asked it for.
type hsm struct {
	chain.Signer
	asked atomic.Int64
}

func (h *hsm) PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error) {
	if ctx.Value(requestKey{}) != nil {
		h.asked.Add(1)
	}

	return h.Signer.PublicKey(ctx, key)
}

// TestRequestsDeriveNoAddressWhileTheEngineRuns holds that addresses are derived ahead, by Run alone, and that no
// address is given out twice.
func TestRequestsDeriveNoAddressWhileTheEngineRuns(t *testing.T) {
	defer goleak.VerifyNone(t)

	c := config(t, sim.New(sim.Config{}))
	signer := &hsm{Signer: c.Signer}
	c.Signer = signer

	engine, err := payments.New(c)
	if err != nil {
		t.Fatal(err)
	}

	merchant, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	given := map[chain.Address]bool{}
	create := func() (asked int64) {
		t.Helper()

		before := signer.asked.Load()

		inv, err := engine.Invoices.Create(
			context.WithValue(t.Context(), requestKey{}, true),
			invoice.CreateParams{
				Owner:   event.Owner{AccountID: merchant.ID},
				Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
			},
		)
		if err != nil {
			t.Fatal(err)
		}

		to := inv.Options[0].Address
		if given[to] {
			t.Fatalf("address %s is given out twice", to)
		}

		given[to] = true

		return signer.asked.Load() - before
	}

	// Without Run each request derives its own.
	for range 3 {
		if asked := create(); asked != 1 {
			t.Fatalf("a creation without Run asked the signer %d times", asked)
		}
	}

	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)

	go func() { ended <- engine.Run(ctx) }()

	for create() > 0 { // until the first ones are there
		if ctx.Err() != nil {
			t.Fatal("nothing is derived ahead")
		}
	}

	for range 10 {
		if asked := create(); asked > 0 {
			t.Errorf("a creation of a running engine asked the signer %d times", asked)
		}
	}

	stop()

	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	// What is held is still given out, and then each request derives its own again.
	for range 1024 {
		if create() > 0 {
			return
		}
	}

	t.Error("the addresses of an engine that does not run never end")
}
