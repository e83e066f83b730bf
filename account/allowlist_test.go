package account_test

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/seal"
)

// on returns addresses as destinations of the test network alpha, in canonical form.
func on(addresses ...chain.Address) (all []chain.Destination) {
	for _, address := range addresses {
		all = append(all, chain.Destination{Network: "alpha", Address: address})
	}

	return all
}

func TestPayoutDestinationsAreThoseOfKeyAndAccount(t *testing.T) {
	specific, wide := []string{"10.0.0.0/16"}, []string{"10.0.0.0/15"}

	for _, test := range []struct {
		name     string
		key      account.Key
		settings account.Settings
		want     []chain.Destination // nil: any
		code     string              // "": allowed
	}{
		{"neither", account.Key{}, account.Settings{}, nil, "payout_allowlist_required"},
		{"the key's", account.Key{Destinations: on("A")}, account.Settings{}, on("A"), ""},
		{"the account's", account.Key{}, account.Settings{Destinations: on("A")}, on("A"), ""},
		{
			"both",
			account.Key{Destinations: on("A", "B")},
			account.Settings{Destinations: on("B", "C")},
			on("B"), "",
		},
		{
			"both, without a common one",
			account.Key{Destinations: on("A"), AllowedIPs: specific},
			account.Settings{Destinations: on("B"), AllowedIPs: specific},
			nil, "destination_not_allowed",
		},
		{
			"the same address on another network",
			account.Key{Destinations: on("A")},
			account.Settings{Destinations: []chain.Destination{{Network: "beta", Address: "A"}}},
			nil, "destination_not_allowed",
		},
		{"IPs of the key", account.Key{AllowedIPs: specific}, account.Settings{}, nil, ""},
		{"IPs of the account", account.Key{}, account.Settings{AllowedIPs: specific}, nil, ""},
		{
			"a wide key of a specific account",
			account.Key{AllowedIPs: wide},
			account.Settings{AllowedIPs: specific},
			nil,
			"",
		},
		{
			"both wide",
			account.Key{AllowedIPs: wide},
			account.Settings{AllowedIPs: wide},
			nil, "payout_allowlist_required",
		},
		{
			"IPs of the key, destinations of the account",
			account.Key{AllowedIPs: specific},
			account.Settings{Destinations: on("A")},
			on("A"), "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.key.PayoutDestinations(test.settings)
			if fault.Code(err) != test.code {
				t.Fatalf("got error %v, want code %q", err, test.code)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}

			var permissions []string

			switch {
			case test.code != "":
			case test.want == nil:
				permissions = []string{"destination:*"}
			default:
				for _, d := range test.want {
					permissions = append(permissions, "destination:"+d.String())
				}
			}

			if diff := cmp.Diff(permissions, test.key.PayoutPermissions(test.settings)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Both ways: a wide key of a specific account may be made, and pays nothing once the account is wide.
func TestAllowlistsOfTheAccountCountForANewKey(t *testing.T) {
	h := newHarness(t)
	p := account.KeyParams{
		AccountID:  h.account.ID,
		Scopes:     []account.Scope{account.PayoutsWrite},
		AllowedIPs: []string{"0.0.0.0/0"},
	}

	set := func(s account.Settings) account.Settings {
		t.Helper()

		a, err := h.UpdateSettings(t.Context(), h.account.ID, s)
		if err != nil {
			t.Fatal(err)
		}

		return a.Settings
	}

	_, _, err := h.CreateKey(t.Context(), p)
	refusesParam(t, err, "allowed_ips")

	for _, s := range []account.Settings{
		{AllowedIPs: []string{"192.0.2.1"}},
		{Destinations: []chain.Destination{{Address: "alpha:one"}}},
	} {
		set(s)

		k, _ := h.key(t, p)
		_, err := k.PayoutDestinations(set(account.Settings{AllowedIPs: []string{"0.0.0.0/0"}}))
		refuses(t, err, fault.Forbidden, "payout_allowlist_required")
	}

	set(account.Settings{Destinations: []chain.Destination{{Address: "alpha:one"}}})

	p.Destinations = []chain.Destination{{Address: "alpha:two"}}
	if _, _, err := h.CreateKey(t.Context(), p); err != nil {
		t.Errorf("a key that pays nothing as yet: %v", err)
	}
}

func TestAClientMustBeOnTheAllowlistsOfKeyAndAccount(t *testing.T) {
	h := newHarness(t)
	_, bound := h.key(t, account.KeyParams{AllowedIPs: []string{"192.0.2.0/25"}})
	_, free := h.key(t, account.KeyParams{})
	_, public := h.key(t, account.KeyParams{Publishable: true})

	check := func(secret, client string, ok bool) {
		t.Helper()

		_, _, err := h.Authenticate(t.Context(), secret, netip.MustParseAddr(client))
		if ok && err != nil {
			t.Errorf("%s: %v", client, err)
		}

		if !ok {
			refuses(t, err, fault.Forbidden, "ip_not_allowed")
		}
	}

	check(free, "198.51.100.1", true)

	// It holds at once for a key that is in the cache.
	if _, err := h.UpdateSettings(
		t.Context(), h.account.ID, account.Settings{AllowedIPs: []string{"192.0.2.64/26", "198.51.100.0/24"}},
	); err != nil {
		t.Fatal(err)
	}

	check(free, "198.51.100.1", true)
	check(free, "::ffff:198.51.100.1", true)
	check(free, "192.0.2.1", false)
	check(public, "192.0.2.1", false)
	check(bound, "192.0.2.65", true)
	check(bound, "192.0.2.1", false)
	check(bound, "198.51.100.1", false)

	_, _, err := h.Authenticate(t.Context(), free, netip.Addr{})
	refuses(t, err, fault.Forbidden, "ip_not_allowed")
}

func TestAllowlistsOfSettingsAreCheckedAsThoseOfKeys(t *testing.T) {
	h := newHarness(t)

	many := make([]string, 101)
	addresses := make([]chain.Destination, 101)

	for i := range many {
		many[i] = "10.0.0." + strconv.Itoa(i)
		addresses[i].Address = chain.Address("alpha:" + strconv.Itoa(i))
	}

	for name, test := range map[string]struct {
		settings account.Settings
		code     string
	}{
		"no IP address":  {account.Settings{AllowedIPs: []string{"shop.example"}}, "key_invalid"},
		"a zone":         {account.Settings{AllowedIPs: []string{"fe80::1%eth0"}}, "key_invalid"},
		"no destination": {account.Settings{Destinations: on("nobody")}, "destination_invalid"},
		"another network": {
			account.Settings{Destinations: []chain.Destination{{Network: "beta", Address: "alpha:1"}}},
			"destination_invalid",
		},
		"many IP addresses":  {account.Settings{AllowedIPs: many}, "key_invalid"},
		"many destinations":  {account.Settings{Destinations: addresses}, "key_invalid"},
		"as many as allowed": {account.Settings{AllowedIPs: many[1:], Destinations: addresses[1:]}, ""},
	} {
		_, err := h.UpdateSettings(t.Context(), h.account.ID, test.settings)
		if fault.Code(err) != test.code {
			t.Errorf("%s: got error %v, want code %q", name, err, test.code)
		}

		if _, err = h.CreateAccount(t.Context(), test.settings); fault.Code(err) != test.code {
			t.Errorf("%s, of a new account: got error %v, want code %q", name, err, test.code)
		}
	}

	// They are stored as payouts and requests are compared with them, for both modes, and can be set again.
	settings := account.Settings{
		AllowedIPs: []string{"10.1.2.3/8", "::ffff:192.0.2.7", "192.0.2.7"},
		Destinations: []chain.Destination{
			{Address: "alpha:one"},
			{Address: "ALPHA:ONE"},
			{Address: "beta:live"},
		},
	}
	want := account.Settings{
		AllowedIPs:   []string{"10.0.0.0/8", "192.0.2.7/32"},
		Destinations: append(on("ALPHA:ONE"), chain.Destination{Network: "beta", Address: "BETA:LIVE"}),
	}

	for range 2 {
		a, err := h.UpdateSettings(t.Context(), h.account.ID, settings)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, a.Settings); diff != "" {
			t.Error(diff)
		}

		settings = a.Settings
	}
}

// One address on many networks is one entry, in the form that is stored too.
func TestALongListOfDestinationsCanBeSetAgain(t *testing.T) {
	var drivers []chain.Driver
	for _, slug := range []string{"one", "two", "three"} {
		drivers = append(drivers, anyAddress{network{slug: slug}})
	}

	registry, err := chain.NewRegistry(drivers...)
	if err != nil {
		t.Fatal(err)
	}

	s, err := account.New(account.Config{DB: newRows(), Registry: registry, IDs: id.New(nil, nil)})
	if err != nil {
		t.Fatal(err)
	}

	var settings account.Settings
	for i := range 100 {
		settings.Destinations = append(settings.Destinations, chain.Destination{
			Address: chain.Address("address" + strconv.Itoa(i)),
		})
	}

	a, err := s.CreateAccount(t.Context(), settings)
	if err != nil || len(a.Settings.Destinations) != 300 {
		t.Fatal(len(a.Settings.Destinations), err)
	}

	if _, err := s.UpdateSettings(t.Context(), a.ID, a.Settings); err != nil {
		t.Error(err)
	}
}

// anyAddress is a network whose addresses are all texts.
type anyAddress struct{ network }

func (anyAddress) ParseAddress(s string) (chain.Address, error) { return chain.Address(s), nil }

// Who writes the database does not take an account's lists away.
func TestAllowlistsOfAnAccountAreAuthenticated(t *testing.T) {
	h := newHarness(t)

	sealer, err := seal.New(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}

	if h.Service, err = account.New(account.Config{
		DB:       h.db,
		Registry: h.registry,
		IDs:      id.New(h.clock, nil),
		Now:      h.clock,
		Seal:     sealer,
	}); err != nil {
		t.Fatal(err)
	}

	if h.account, err = h.CreateAccount(t.Context(), account.Settings{
		AllowedIPs:   []string{"192.0.2.1"},
		Destinations: []chain.Destination{{Address: "alpha:one"}},
	}); err != nil {
		t.Fatal(err)
	}

	_, secret := h.key(t, account.KeyParams{})

	for name, change := range map[string]func(s *account.Settings){
		"IP addresses": func(s *account.Settings) { s.AllowedIPs = nil },
		"destinations": func(s *account.Settings) { s.Destinations = slices.Concat(s.Destinations, on("MINE")) },
	} {
		changed := h.account
		change(&changed.Settings)

		h.db.accounts[changed.ID] = changed
		h.now = h.now.Add(account.CacheTTL)

		_, _, err := h.Authenticate(t.Context(), secret, netip.MustParseAddr("192.0.2.1"))
		if fault.Code(err) != "account_damaged" {
			t.Errorf("%s: got error %v", name, err)
		}
	}

	h.db.accounts[h.account.ID] = h.account

	if _, _, err := h.Authenticate(t.Context(), secret, netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Error(err)
	}
}
