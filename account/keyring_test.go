package account_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

func TestKeysAreChecked(t *testing.T) {
	h := newHarness(t)
	for _, test := range []struct {
		p     account.KeyParams
		param string
	}{
		{account.KeyParams{Name: strings.Repeat("x", 81)}, "name"},
		{account.KeyParams{Scopes: []account.Scope{"admin"}}, "scopes"},
		{account.KeyParams{Scopes: []account.Scope{account.InvoicesRead, account.InvoicesRead}}, "scopes"},
		{account.KeyParams{Publishable: true, Scopes: []account.Scope{account.InvoicesRead}}, "scopes"},
		{account.KeyParams{AllowedIPs: []string{"shop.example"}}, "allowed_ips"},
		{account.KeyParams{AllowedIPs: []string{"fe80::1%eth0"}}, "allowed_ips"},
		{account.KeyParams{AllowedIPs: []string{"10.0.0.0/33"}}, "allowed_ips"},
		{account.KeyParams{AllowedIPs: []string{"::ffff:10.0.0.0/8"}}, "allowed_ips"},
		{account.KeyParams{Destinations: []chain.Destination{{Address: "nobody"}}}, "destinations"},
		{account.KeyParams{Destinations: []chain.Destination{{Address: "beta:1"}}}, "destinations"}, // other mode
		{account.KeyParams{ExpiresAt: h.now}, "expires_at"},
	} {
		test.p.AccountID = h.account.ID
		_, secret, err := h.CreateKey(t.Context(), test.p)
		refusesParam(t, err, test.param)

		if secret != "" {
			t.Errorf("a refused call about %s returned a secret", test.param)
		}
	}

	_, _, err := h.CreateKey(t.Context(), account.KeyParams{AccountID: nobody})
	refuses(t, err, fault.NotFound, "resource_missing")

	if keys, _ := h.Keys(t.Context(), h.account.ID); len(keys) != 0 {
		t.Errorf("%d keys were stored by refused calls", len(keys))
	}
}

func TestNewKey(t *testing.T) {
	h := newHarness(t)

	k, secret := h.key(t, account.KeyParams{
		Name: "server",
		AllowedIPs: []string{
			"10.9.0.0/16",
			"10.1.2.3/8",
			"10.0.0.1",
			"::ffff:192.0.2.7",
			"192.0.2.7",
			"::/0",
			"2001:db8::1",
		},
		Destinations: []chain.Destination{{Address: "alpha:one"}, {Address: "ALPHA:ONE"}},
	})
	if !strings.HasPrefix(secret, "shop_test_sk_") || !strings.HasSuffix(secret, k.Last4) ||
		len(k.Last4) != 4 {
		t.Errorf("secret begins with %q, last4 is %q", secret[:13], k.Last4)
	}

	if k.Allows(account.PayoutsWrite) || k.Allows(account.RefundsWrite) || !k.Allows(account.InvoicesWrite) {
		t.Errorf("a new key has the scopes %v", k.Scopes)
	}

	if diff := cmp.Diff([]string{"10.0.0.0/8", "192.0.2.7/32", "::/0"}, k.AllowedIPs); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(
		[]chain.Destination{{Network: "alpha", Address: "ALPHA:ONE"}}, k.Destinations,
	); diff != "" {
		t.Error(diff)
	}

	p, public := h.key(t, account.KeyParams{Livemode: true, Publishable: true})
	if !strings.HasPrefix(public, "shop_live_pk_") || len(p.Scopes) != 0 {
		t.Errorf("a publishable key has the scopes %v", p.Scopes)
	}
}

func TestAuthenticate(t *testing.T) {
	h := newHarness(t)
	anywhere := netip.Addr{}
	k, secret := h.key(t, account.KeyParams{ExpiresAt: h.now.Add(time.Hour)})

	got, a, err := h.Authenticate(t.Context(), secret, anywhere)
	if err != nil || a.ID != h.account.ID {
		t.Fatal(a.ID, err)
	}

	if diff := cmp.Diff(k, got); diff != "" {
		t.Fatal(diff)
	}

	stranger, _, err := account.GenerateKey("shop", false, false, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, wrong := range []string{
		"",
		"Bearer",
		secret + "x",
		secret[:len(secret)-1],
		strings.ToUpper(secret),
		stranger,
	} {
		_, _, err := h.Authenticate(t.Context(), wrong, anywhere)
		refuses(t, err, fault.Unauthenticated, "api_key_invalid")

		if wrong != "" && strings.Contains(err.Error(), wrong) && wrong != "Bearer" {
			t.Error("the error shows the key")
		}
	}

	h.now = h.now.Add(time.Hour - time.Millisecond)
	if _, _, err := h.Authenticate(t.Context(), secret, anywhere); err != nil {
		t.Fatalf("just before the end: %v", err)
	}

	h.now = h.now.Add(time.Millisecond)
	_, _, err = h.Authenticate(t.Context(), secret, anywhere)
	refuses(t, err, fault.Unauthenticated, "api_key_expired")
}

func TestAllowlistOfClientAddresses(t *testing.T) {
	h := newHarness(t)

	_, secret := h.key(t, account.KeyParams{AllowedIPs: []string{"10.0.0.0/8", "2001:db8::/32", "192.0.2.7"}})
	for client, ok := range map[string]bool{
		"10.255.0.1":       true,
		"::ffff:10.1.1.1":  true,
		"192.0.2.7":        true,
		"2001:db8::5":      true,
		"2001:db8::5%eth0": true,
		"11.0.0.1":         false,
		"192.0.2.8":        false,
		"2001:db9::1":      false,
		"::1":              false,
	} {
		_, _, err := h.Authenticate(t.Context(), secret, netip.MustParseAddr(client))
		if ok && err != nil {
			t.Errorf("%s: %v", client, err)
		}

		if !ok {
			refuses(t, err, fault.Forbidden, "ip_not_allowed")
		}
	}

	_, _, err := h.Authenticate(t.Context(), secret, netip.Addr{})
	refuses(t, err, fault.Forbidden, "ip_not_allowed")
}

func TestRevokedKeyIsRefusedAtOnceHereAndWithinTheTTLElsewhere(t *testing.T) {
	h := newHarness(t)
	elsewhere := h.another(t)

	k, secret := h.key(t, account.KeyParams{})
	for _, s := range []*account.Service{h.Service, elsewhere, h.Service, elsewhere} {
		if _, _, err := s.Authenticate(t.Context(), secret, netip.Addr{}); err != nil {
			t.Fatal(err)
		}
	}

	if h.db.lookups != 2 {
		t.Errorf("4 requests in 2 processes made %d look-ups, want 2", h.db.lookups)
	}

	revoked, err := h.RevokeKey(t.Context(), h.account.ID, k.ID)
	if err != nil || revoked.RevokedAt != h.now {
		t.Fatal(revoked.RevokedAt, err)
	}

	_, _, err = h.Authenticate(t.Context(), secret, netip.Addr{})
	refuses(t, err, fault.Unauthenticated, "api_key_revoked")

	h.now = h.now.Add(account.CacheTTL)
	_, _, err = elsewhere.Authenticate(t.Context(), secret, netip.Addr{})
	refuses(t, err, fault.Unauthenticated, "api_key_revoked")

	again, err := h.RevokeKey(t.Context(), h.account.ID, k.ID)
	if err != nil || again.RevokedAt != revoked.RevokedAt {
		t.Errorf("revoking again changed the time to %v: %v", again.RevokedAt, err)
	}

	_, err = h.RevokeKey(t.Context(), nobody, k.ID)
	refuses(t, err, fault.NotFound, "resource_missing")
}

// A key that is read before it is revoked and remembered after would work on.
func TestRevokingDuringALookupLeavesNothingBehind(t *testing.T) {
	h := newHarness(t)
	k, secret := h.key(t, account.KeyParams{})
	h.db.onLookup = func() {
		h.db.onLookup = nil
		if _, err := h.RevokeKey(t.Context(), h.account.ID, k.ID); err != nil {
			t.Error(err)
		}
	}
	_, _, _ = h.Authenticate(t.Context(), secret, netip.Addr{})
	_, _, err := h.Authenticate(t.Context(), secret, netip.Addr{})
	refuses(t, err, fault.Unauthenticated, "api_key_revoked")
}

func TestRollKey(t *testing.T) {
	h := newHarness(t)
	old, oldSecret := h.key(
		t,
		account.KeyParams{
			Name:       "server",
			Scopes:     []account.Scope{account.PayoutsWrite},
			AllowedIPs: []string{"10.0.0.1"},
		},
	)

	client := netip.MustParseAddr("10.0.0.1")
	if _, _, err := h.Authenticate(t.Context(), oldSecret, client); err != nil {
		t.Fatal(err)
	}

	k, secret, err := h.RollKey(t.Context(), h.account.ID, old.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	want := old

	want.ID, want.Hash, want.Last4, want.RolledFrom = k.ID, account.HashKey(
		secret,
	), secret[len(secret)-4:], old.ID
	if diff := cmp.Diff(want, k); diff != "" || k.ID == old.ID || secret == oldSecret {
		t.Errorf("the new key may do something else: %s", diff)
	}

	for _, later := range []time.Duration{0, time.Hour - time.Millisecond} {
		h.now = h.now.Add(later)
		for _, s := range []string{oldSecret, secret} {
			if _, _, err := h.Authenticate(t.Context(), s, client); err != nil {
				t.Errorf("during the overlap: %v", err)
			}
		}
	}

	h.now = h.now.Add(time.Millisecond)
	_, _, err = h.Authenticate(t.Context(), oldSecret, client)
	refuses(t, err, fault.Unauthenticated, "api_key_expired")

	if _, _, err := h.Authenticate(t.Context(), secret, client); err != nil {
		t.Error(err)
	}

	_, _, err = h.RollKey(t.Context(), h.account.ID, old.ID, time.Hour)
	refuses(t, err, fault.State, "key_not_live")

	for _, overlap := range []time.Duration{-1, account.MaxOverlap + 1} {
		_, _, err = h.RollKey(t.Context(), h.account.ID, k.ID, overlap)
		refusesParam(t, err, "overlap")
	}

	_, _, err = h.RollKey(t.Context(), nobody, k.ID, 0)
	refuses(t, err, fault.NotFound, "resource_missing")
}

// The end of a key that was rolled is that of its overlap, which a second replacement would copy.
func TestAKeyIsRolledOnce(t *testing.T) {
	h := newHarness(t)
	end := h.now.Add(30 * 24 * time.Hour)
	first, _ := h.key(t, account.KeyParams{ExpiresAt: end})

	second, _, err := h.RollKey(t.Context(), h.account.ID, first.ID, time.Hour)
	if err != nil || !second.ExpiresAt.Equal(end) {
		t.Fatalf("the replacement ends at %v: %v", second.ExpiresAt, err)
	}

	for _, overlap := range []time.Duration{0, 2 * time.Hour} {
		_, _, err = h.RollKey(t.Context(), h.account.ID, first.ID, overlap)
		refuses(t, err, fault.State, "key_not_live")

		if err != nil && !strings.Contains(err.Error(), second.ID) {
			t.Errorf("%v does not name the key %s", err, second.ID)
		}
	}

	if _, _, err = h.RollKey(t.Context(), h.account.ID, second.ID, time.Hour); err != nil {
		t.Errorf("the replacement is not rolled: %v", err)
	}

	keys, err := h.Keys(t.Context(), h.account.ID)
	if err != nil || len(keys) != 3 || !keys[2].ExpiresAt.Equal(h.now.Add(time.Hour)) {
		t.Errorf("keys after rolling: %+v, %v", keys, err)
	}
}

func TestRollingNeverProlongsAKey(t *testing.T) {
	h := newHarness(t)
	end := h.now.Add(time.Minute)

	old, _ := h.key(t, account.KeyParams{ExpiresAt: end})
	if _, _, err := h.RollKey(t.Context(), h.account.ID, old.ID, time.Hour); err != nil {
		t.Fatal(err)
	}

	keys, err := h.Keys(t.Context(), h.account.ID)
	if err != nil || len(keys) != 2 || keys[1].ID != old.ID || !keys[1].ExpiresAt.Equal(end) {
		t.Errorf("keys after rolling: %+v, %v", keys, err)
	}
}
