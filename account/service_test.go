package account_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
)

const nobody = "000000000000000000000000"

// refuses fails the test unless err has the word and the code.
func refuses(t *testing.T, err, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || fault.Code(err) != code {
		t.Errorf("got error %v (code %q), want %v with code %q", err, fault.Code(err), word, code)
	}
}

// refusesParam fails the test unless err is fault.Invalid about the field.
func refusesParam(t *testing.T, err error, param string) {
	t.Helper()

	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !errors.Is(err, fault.Invalid) || f.Param != param {
		t.Errorf("got error %v, want fault.Invalid about %s", err, param)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	registry, _ := chain.NewRegistry()
	for name, c := range map[string]account.Config{
		"nothing":     {},
		"no database": {Registry: registry, IDs: id.New(nil, nil)},
		"prefix":      {DB: newRows(), Registry: registry, IDs: id.New(nil, nil), KeyPrefix: "No_Good"},
	} {
		if _, err := account.New(c); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: got error %v, want fault.Invalid", name, err)
		}
	}
}

func TestAccountsHaveIndexesFromZeroAndPageNewestFirst(t *testing.T) {
	h := newHarness(t)

	ids := []string{h.account.ID}
	for i := range 4 {
		h.now = h.now.Add(time.Second)

		a, err := h.CreateAccount(t.Context(), account.Settings{})
		if err != nil || a.Index != uint32(i+1) {
			t.Fatalf("account %d has index %d, error %v", i+1, a.Index, err)
		}

		ids = append(ids, a.ID)
	}

	slices.Reverse(ids)

	var got []string
	for after, more := "", true; more; after = got[len(got)-1] {
		page, again, err := h.List(t.Context(), after, 2)
		if err != nil || len(page) == 0 || len(page) > 2 {
			t.Fatalf("a page of %d after %q: %v", len(page), after, err)
		}

		for _, a := range page {
			got = append(got, a.ID)
		}

		more = again
	}

	if diff := cmp.Diff(ids, got); diff != "" {
		t.Fatal(diff)
	}

	_, err := h.Get(t.Context(), nobody)
	refuses(t, err, fault.NotFound, "resource_missing")
}

func TestSettingsAreChecked(t *testing.T) {
	h := newHarness(t)
	asset, symbol := h.registry.Assets(false)[0].ID, h.registry.Assets(false)[0].Symbol

	fee := func(n int) *int { return &n }
	for _, test := range []struct {
		name     string
		settings account.Settings
		param    string // "" when it is right
	}{
		{"zero", account.Settings{}, ""},
		{
			"full",
			account.Settings{
				Name:              strings.Repeat("é", 80),
				WebsiteURL:        "https://shop.example",
				SuccessURL:        "https://shop.example/ok?x=1",
				CancelURL:         "https://shop.example/no",
				ToleranceBPS:      500,
				SweepMinUSD:       decimal.RequireFromString("12.00000001"),
				FeeBPS:            fee(0),
				Assets:            []string{asset},
				PayoutsPerHour:    20,
				RequestsPerSecond: 10,
				RequestBurst:      30,
			},
			"",
		},
		{"long name", account.Settings{Name: strings.Repeat("é", 81)}, "name"},
		{"name of two lines", account.Settings{Name: "a\nb"}, "name"},
		{"name in no UTF-8", account.Settings{Name: "\xff"}, "name"},
		{"http", account.Settings{WebsiteURL: "http://shop.example"}, "website_url"},
		{"script", account.Settings{SuccessURL: "javascript:alert(1)"}, "success_url"},
		{"no host", account.Settings{CancelURL: "https:///x"}, "cancel_url"},
		{"password", account.Settings{CancelURL: "https://u:p@shop.example"}, "cancel_url"},
		{"long URL", account.Settings{CancelURL: "https://shop.example/" + strings.Repeat("a", 2048)}, "cancel_url"},
		{"negative tolerance", account.Settings{ToleranceBPS: -1}, "tolerance_bps"},
		{"tolerance", account.Settings{ToleranceBPS: 501}, "tolerance_bps"},
		{"fee", account.Settings{FeeBPS: fee(501)}, "fee_bps"},
		{"negative sweep", account.Settings{SweepMinUSD: decimal.RequireFromString("-1")}, "sweep_min_usd"},
		{"fine sweep", account.Settings{SweepMinUSD: decimal.RequireFromString("0.000000001")}, "sweep_min_usd"},
		{"huge sweep", account.Settings{SweepMinUSD: decimal.New(1, 1_000_000)}, "sweep_min_usd"},
		{"no assets", account.Settings{Assets: []string{}}, "assets"},
		{"unknown asset", account.Settings{Assets: []string{strings.Repeat("f", 24)}}, "assets"},
		{"asset twice", account.Settings{Assets: []string{asset, asset}}, "assets"},
		{"asset by id and symbol", account.Settings{Assets: []string{asset, symbol}}, "assets"},
		{"payouts", account.Settings{PayoutsPerHour: -1}, "payouts_per_hour"},
		{"rate", account.Settings{RequestsPerSecond: -1}, "requests_per_second"},
		{"burst", account.Settings{RequestBurst: -1}, "request_burst"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := h.UpdateSettings(t.Context(), h.account.ID, test.settings)
			if test.param != "" {
				refusesParam(t, err, test.param)
				_, err = h.CreateAccount(t.Context(), test.settings)
				refusesParam(t, err, test.param)

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.settings, a.Settings); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// TestSettingsKeepWhatIsNotServedAnyMore: assets and destinations of a removed network may stay or be removed, but not
// be added. Other settings change meanwhile.
func TestSettingsKeepWhatIsNotServedAnyMore(t *testing.T) {
	h := newHarness(t)
	gone, kept := h.registry.Assets(false)[0].ID, h.registry.Assets(true)[0].ID
	to := chain.Destination{Network: "alpha", Address: "ALPHA:ONE"}
	old := account.Settings{Assets: []string{gone, kept}, Destinations: []chain.Destination{to}}

	a, err := h.UpdateSettings(t.Context(), h.account.ID, old)
	if err != nil {
		t.Fatal(err)
	}

	old = a.Settings

	if h.registry, err = chain.NewRegistry(network{slug: "beta", livemode: true}); err != nil {
		t.Fatal(err)
	}

	h.Service = h.another(t)
	changed := old
	changed.ToleranceBPS = 5
	changed.Assets = []string{kept, gone}

	if a, err = h.UpdateSettings(t.Context(), h.account.ID, changed); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(changed, a.Settings); diff != "" {
		t.Error(diff)
	}

	twice := changed
	twice.Assets = []string{gone, gone}
	_, err = h.UpdateSettings(t.Context(), h.account.ID, twice)
	refusesParam(t, err, "assets")

	_, err = h.UpdateSettings(t.Context(), h.account.ID, account.Settings{Assets: []string{kept}})
	if err != nil {
		t.Fatal(err)
	}

	_, err = h.UpdateSettings(t.Context(), h.account.ID, account.Settings{Assets: old.Assets})
	refusesParam(t, err, "assets")

	_, err = h.UpdateSettings(t.Context(), h.account.ID, account.Settings{Destinations: old.Destinations})
	refusesParam(t, err, "destinations")
}

func TestChangedSettingsAreOneInternalEvent(t *testing.T) {
	h := newHarness(t)

	a, err := h.UpdateSettings(t.Context(), h.account.ID, account.Settings{Name: "New"})
	if err != nil {
		t.Fatal(err)
	}

	want := []event.Event{{
		Owner:    event.Owner{AccountID: a.ID},
		Type:     event.SettingsChanged,
		ObjectID: a.ID,
		Payload:  a,
	}}

	if diff := cmp.Diff(want, h.db.events); diff != "" {
		t.Error(diff)
	}

	_, err = h.UpdateSettings(t.Context(), nobody, account.Settings{})
	refuses(t, err, fault.NotFound, "resource_missing")
}

func TestLogo(t *testing.T) {
	h := newHarness(t)

	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100)...)

	webp := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8 "), make([]byte, 100)...)
	for _, test := range []struct {
		name, contentType string
		logo              []byte
		ok                bool
	}{
		{"png", "image/png", png, true},
		{"webp", "image/webp", webp, true},
		{"jpeg", "image/jpeg", []byte("\xff\xd8\xff\xe0 jpeg"), true},
		{"wrong kind", "image/jpeg", png, false},
		{"svg", "image/svg+xml", []byte("<svg/>"), false},
		{"page", "image/png", []byte("<html>"), false},
		{"too large", "image/png", append(png, make([]byte, account.MaxLogo)...), false},
		{"removed", "", nil, true},
	} {
		a, err := h.SetLogo(t.Context(), h.account.ID, test.contentType, test.logo)
		if test.ok && (err != nil || !bytes.Equal(a.Logo, test.logo) || a.LogoType != test.contentType) {
			t.Errorf("%s: %v, stored %d bytes as %q", test.name, err, len(a.Logo), a.LogoType)
		}

		if !test.ok {
			refuses(t, err, fault.Invalid, "logo_invalid")
		}
	}
}
