package engine

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A process with another SecretKey refuses every request: Health says so, and names the field.
func TestAnotherSecretKeyIsInHealth(t *testing.T) {
	st, network := memory.New(), sim.New(sim.Config{})
	with := func(key byte, old ...[]byte) *Engine {
		return newEngine(t, map[string]string{"SIM/USD": "1"}, Config{
			Store:         st,
			Drivers:       []chain.Driver{network},
			Signer:        sim.NewSigner(1, nil),
			SecretKey:     bytes.Repeat([]byte{key}, 32),
			OldSecretKeys: old,
		})
	}

	if _, err := with(
		1,
	).Accounts.CreateAccount(
		t.Context(),
		account.Settings{Name: "Corner Shop"},
	); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		engine *Engine
		named  bool
	}{
		"the key of the records": {with(1), false},
		"a key that follows it":  {with(2, bytes.Repeat([]byte{1}, 32)), false},
		"another key":            {with(3), true},
	} {
		err := c.engine.checkSecretKey(t.Context())
		if named := err != nil &&
			strings.Contains(err.Error(), "payments.Config.SecretKey"); named != c.named {
			t.Errorf("%s: %v", name, err)
		}
	}
}
