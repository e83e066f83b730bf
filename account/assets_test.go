package account_test

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
)

// A symbol stands for every enabled asset of that symbol, and is stored as their ids.
func TestAssetsAreNamedBySymbolToo(t *testing.T) {
	h := newHarness(t)

	all := append(h.registry.Assets(true), h.registry.Assets(false)...)
	symbol := all[0].Symbol

	var want []string

	for _, a := range all {
		if a.Symbol == symbol {
			want = append(want, a.ID)
		}
	}

	made, err := h.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop", Assets: []string{symbol}})
	if err != nil {
		t.Fatal(err)
	}

	if !slices.Equal(made.Settings.Assets, want) {
		t.Errorf("%s is stored as %v, want %v", symbol, made.Settings.Assets, want)
	}

	again, err := h.UpdateSettings(t.Context(), made.ID, made.Settings)
	if err != nil || !slices.Equal(again.Settings.Assets, want) {
		t.Errorf("what was stored is set as %v: %v", again.Settings.Assets, err)
	}
}
