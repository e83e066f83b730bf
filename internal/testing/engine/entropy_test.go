package engine_test

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// randomOutcomes makes one of everything that the engine draws at random and returns all of it.
func randomOutcomes(t *testing.T, entropy io.Reader) []string {
	t.Helper()

	clock := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	network := sim.New(sim.Config{Clock: clock})
	cfg := config(t, network)
	cfg.Now, cfg.Entropy, cfg.Store = clock, entropy, memory.New()

	engine, err := payments.New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	merchant, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	_, key, err := engine.Accounts.CreateKey(
		t.Context(), account.KeyParams{AccountID: merchant.ID, Name: "server"},
	)
	if err != nil {
		t.Fatal(err)
	}

	_, secret, err := engine.Webhooks.CreateEndpoint(t.Context(), webhook.EndpointParams{
		Owner:  event.Owner{AccountID: merchant.ID, Livemode: true},
		URL:    "https://shop.example/hook",
		Events: []event.Type{"*"},
	})
	if err != nil {
		t.Fatal(err)
	}

	sealed := internal.Of(engine).Sealer().Seal([]byte("answer"), []byte("row"))

	return []string{merchant.ID, key, secret, string(sealed)}
}

func TestEntropyIsTheOnlySourceOfRandomness(t *testing.T) {
	seeded := func(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }
	first, again := randomOutcomes(t, seeded(1)), randomOutcomes(t, seeded(1))

	if !slices.Equal(first, again) {
		t.Errorf("the same entropy gave\n%q and\n%q", first, again)
	}

	for name, entropy := range map[string]io.Reader{"another seed": seeded(2), "the default": nil} {
		for i, other := range randomOutcomes(t, entropy) {
			if other == first[i] {
				t.Errorf("with %s, outcome %d is the same: %q", name, i, other)
			}
		}
	}
}
