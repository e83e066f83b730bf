package httpapi_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// approvingShop is a shop whose payouts above 100 USD wait for a second key. A SIM is worth 2500 USD.
type approvingShop struct {
	*shop
	now            time.Time
	there          string
	pays, approves string
	payouts        int
	other          string      // another payout, for a test's own use
	victim         chain.Party // another account's wallet
}

func newApprovingShop(t *testing.T) *approvingShop {
	t.Helper()
	return newApprovingShopOn(t, memory.New())
}

func newApprovingShopOn(t *testing.T, db payments.Store) *approvingShop {
	t.Helper()

	s := &approvingShop{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.shop = openOn(t, db, nil, func() time.Time { return s.now })
	s.fund(t, "SIM", chain.Pow10(20))

	most := decimal.NewFromInt(100)
	if _, err := s.engine.Accounts.UpdateSettings(
		t.Context(), s.account.ID, account.Settings{Name: "Corner Shop", ApproveAboveUSD: &most},
	); err != nil {
		t.Fatal(err)
	}

	s.there = string(s.network.NewAddress())
	s.pays = s.newKey(t, account.KeyParams{
		Scopes:       []account.Scope{account.PayoutsWrite, account.PayoutsApprove, account.PayoutsRead},
		Destinations: destinations(s.there),
	})
	s.approves = s.newKey(t, account.KeyParams{Scopes: []account.Scope{account.PayoutsApprove}})

	return s
}

// pay requests a payout and returns its id.
func (s *approvingShop) pay(t *testing.T, amount chain.Amount) map[string]any {
	t.Helper()

	s.payouts++

	return s.ok(t, s.do(t, request{
		method: "POST",
		path:   "/v1/payouts",
		key:    s.pays,
		body:   payoutBody("SIM", amount.String(), s.there),
		header: header("Idempotency-Key", fmt.Sprintf("payout-%d", s.payouts)),
	}))
}

func (s *approvingShop) approve(t *testing.T, id, key string) reply {
	t.Helper()
	return s.do(t, request{method: "POST", path: "/v1/payouts/" + id + "/approve", key: key})
}

// work lets the engine do all it has to do, with blocks in between.
func (s *approvingShop) work(t *testing.T) {
	t.Helper()

	for range 12 {
		for did := true; did; {
			var err error
			if did, err = s.engine.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		s.network.Mine(1)
		s.now = s.now.Add(3 * time.Second)
	}
}

func (s *approvingShop) status(t *testing.T, id string) (status string, approval map[string]any) {
	t.Helper()

	p := s.get(t, "/v1/payouts/"+id)
	approval, _ = p["approval"].(map[string]any)

	return p["status"].(string), approval
}

func TestAPayoutAboveTheSumIsApprovedByASecondKey(t *testing.T) {
	s := newApprovingShop(t)

	created := s.pay(t, chain.Pow10(18))
	id := created["id"].(string)

	if approval := created["approval"].(map[string]any); approval["required"] != true || len(approval) != 1 {
		t.Errorf("it is created with the approval %v", approval)
	}

	s.work(t)

	if status, _ := s.status(t, id); status != "pending" {
		t.Fatalf("without an approval it is %s", status)
	}

	// Neither who asked nor who may not.
	if f := s.approve(t, id, s.pays).refused(t, 403); f.Code != "approval_by_requester" {
		t.Errorf("%+v", f)
	}

	reader := s.newKey(
		t,
		account.KeyParams{Scopes: []account.Scope{account.PayoutsRead, account.PayoutsWrite}},
	)
	if f := s.approve(t, id, reader).refused(t, 403); f.Code != "scope_missing" {
		t.Errorf("%+v", f)
	}

	approved := s.ok(t, s.approve(t, id, s.approves))
	if again := s.ok(t, s.approve(t, id, s.approves)); fmt.Sprint(again) != fmt.Sprint(approved) {
		t.Errorf("approved twice: %v, then %v", approved, again)
	}

	approval := approved["approval"].(map[string]any)
	if approval["approved_by"] == "" || approval["approved_at"] == nil || approved["status"] != "pending" {
		t.Errorf("approved as %v", approved)
	}

	s.work(t)

	if status, _ := s.status(t, id); status != "confirmed" {
		t.Errorf("an approved payout is %s", status)
	}
}

// TestAnApproverApprovesItsDestinationsOnly: the list of destinations of a key that approves counts as that of one that
// pays.
func TestAnApproverApprovesItsDestinationsOnly(t *testing.T) {
	s := newApprovingShop(t)

	created := s.pay(t, chain.Pow10(18))
	id, to := created["id"].(string), chain.Address(created["destination"].(string))

	narrow := func(destination chain.Address) string {
		return s.newKey(t, account.KeyParams{
			Scopes:       []account.Scope{account.PayoutsApprove},
			Destinations: []chain.Destination{{Address: destination}},
		})
	}

	f := s.approve(t, id, narrow(s.network.NewAddress())).refused(t, 403)
	if f.Code != "destination_not_allowed" {
		t.Errorf("%+v", f)
	}

	if _, approval := s.status(t, id); approval["approved_by"] != nil {
		t.Errorf("it is approved: %v", approval)
	}

	s.ok(t, s.approve(t, id, narrow(to)))
}

// TestKeysOfOneHolderDoNotApproveForEachOther: who was given a key and those that replaced it is one person.
func TestKeysOfOneHolderDoNotApproveForEachOther(t *testing.T) {
	s := newApprovingShop(t)

	roll := func(id string) (newID, secret string) {
		k, secret, err := s.engine.Accounts.RollKey(t.Context(), s.account.ID, id, time.Hour)
		if err != nil {
			t.Fatal(err)
		}

		return k.ID, secret
	}
	requester := func(id string) string {
		return s.get(t, "/v1/payouts/"+id)["requested_by"].(map[string]any)["id"].(string)
	}

	first := s.pays
	byFirst := s.pay(t, chain.Pow10(18))["id"].(string)
	firstID := requester(byFirst)
	secondID, second := roll(firstID)
	_, third := roll(secondID)

	s.pays = second
	bySecond := s.pay(t, chain.Pow10(18))["id"].(string)

	for name, c := range map[string]struct{ payout, key string }{
		"itself":             {byFirst, first},
		"the key after it":   {byFirst, second},
		"the key after that": {byFirst, third},
		"the key before it":  {bySecond, first},
	} {
		if f := s.approve(t, c.payout, c.key).refused(t, 403); f.Code != "approval_by_requester" {
			t.Errorf("%s: %+v", name, f)
		}
	}

	for _, id := range []string{byFirst, bySecond} {
		s.ok(t, s.approve(t, id, s.approves))
	}
}

func TestASmallPayoutNeedsNoApproval(t *testing.T) {
	s := newApprovingShop(t)

	p := s.pay(t, chain.Pow10(16)) // 25 USD
	if p["approval"] != nil {
		t.Errorf("%v", p)
	}

	if f := s.approve(t, p["id"].(string), s.approves).
		refused(t, 409); f.Code != "payout_approval_not_required" {
		t.Errorf("%+v", f)
	}
}

func TestAnUnapprovedPayoutGoesStale(t *testing.T) {
	s := newApprovingShop(t)
	id := s.pay(t, chain.Pow10(18))["id"].(string)

	s.now = s.now.Add(2*time.Hour - time.Minute)
	s.work(t)

	if status, _ := s.status(t, id); status != "pending" {
		t.Errorf("just before the end it is %s", status)
	}

	s.now = s.now.Add(time.Minute)

	if f := s.approve(t, id, s.approves).refused(t, 409); f.Code != "payout_not_pending" {
		t.Errorf("%+v", f)
	}

	s.work(t)

	p := s.get(t, "/v1/payouts/"+id)
	if p["status"] != "failed" || p["failure_code"] != "stale" {
		t.Errorf("afterwards: %v", p)
	}
}

func TestAPayoutThatWaitsCanBeCanceled(t *testing.T) {
	s := newApprovingShop(t)
	id := s.pay(t, chain.Pow10(18))["id"].(string)

	s.ok(t, s.do(t, request{method: "POST", path: "/v1/payouts/" + id + "/cancel", key: s.pays}))

	if f := s.approve(t, id, s.approves).refused(t, 409); f.Code != "payout_not_pending" {
		t.Errorf("%+v", f)
	}
}

// Whoever can write the database, and does not have the SecretKey, gets neither a key nor a signature. The thief
// writes through the store itself, as anybody with its password could.
func TestAStolenDatabaseMakesNoKey(t *testing.T) {
	s := open(t, nil)
	s.get(t, "/v1/invoices")

	db := storeOf(s)
	steal := func(change func(k *account.Key)) string {
		secret, hash, err := account.GenerateKey("pay", false, false, nil)
		if err != nil {
			t.Fatal(err)
		}

		keys, err := s.engine.Accounts.Keys(t.Context(), s.account.ID)
		if err != nil {
			t.Fatal(err)
		}

		forged := keys[0]
		forged.ID, forged.Hash, forged.Version = "0000000000000000000000"+secret[len(secret)-2:], hash, 0
		change(&forged)
		write(t, db, func(ctx context.Context, tx store.Tx) error { return tx.PutKey(ctx, &forged) })

		return secret
	}

	for name, change := range map[string]func(k *account.Key){
		"with the tag of another": func(*account.Key) {},
		"without a tag":           func(k *account.Key) { k.MAC = nil },
	} {
		q := request{method: "GET", path: "/v1/invoices", key: steal(change)}
		if f := s.do(t, q).refused(t, 401); f.Code != "api_key_invalid" {
			t.Errorf("%s: %+v", name, f)
		}
	}

	// A key of one's own that is widened, revived or given to another account.
	for name, change := range map[string]func(k *account.Key){
		"more scopes":     func(k *account.Key) { k.Scopes = account.AllScopes() },
		"any address":     func(k *account.Key) { k.AllowedIPs = nil },
		"a destination":   func(k *account.Key) { k.Destinations = destinations("x") },
		"live mode":       func(k *account.Key) { k.Owner.Livemode = true },
		"no expiry":       func(k *account.Key) { k.ExpiresAt = time.Time{} },
		"another secret":  func(k *account.Key) { k.Publishable = true },
		"another account": func(k *account.Key) { k.Owner.AccountID = "" },
	} {
		other := open(t, nil)
		secret := other.newKey(t, account.KeyParams{
			Scopes:     []account.Scope{account.InvoicesRead},
			AllowedIPs: []string{"192.0.2.0/24"},
			ExpiresAt:  time.Now().Add(time.Hour),
		})

		widened, _, err := storeOf(other).KeyByHash(t.Context(), account.HashKey(secret))
		if err != nil {
			t.Fatal(err)
		}

		change(&widened)

		if widened.Owner.AccountID == "" {
			another, err := other.engine.Accounts.CreateAccount(t.Context(), account.Settings{})
			if err != nil {
				t.Fatal(err)
			}

			widened.Owner.AccountID = another.ID
		}

		write(
			t,
			storeOf(other),
			func(ctx context.Context, tx store.Tx) error { return tx.PutKey(ctx, &widened) },
		)
		other.do(t, request{method: "GET", path: "/v1/invoices", key: secret}).refused(t, 401)

		// Rolling does not launder it, and revoking gives it no tag.
		if _, _, err := other.engine.Accounts.RollKey(
			t.Context(), widened.Owner.AccountID, widened.ID, 0,
		); err == nil {
			t.Errorf("%s: it is rolled", name)
		}
	}
}

func TestStolenSettingsAreNotObeyed(t *testing.T) {
	s := open(t, nil)

	a, err := storeOf(s).Account(t.Context(), s.account.ID)
	if err != nil {
		t.Fatal(err)
	}

	a.Settings.PayoutsPerHour = 1_000_000

	write(t, storeOf(s), func(ctx context.Context, tx store.Tx) error { return tx.PutAccount(ctx, &a) })

	s.do(t, request{method: "GET", path: "/v1/invoices"}).refused(t, 503)

	if _, err := s.engine.Accounts.SetLogo(t.Context(), a.ID, "", nil); err == nil {
		t.Error("another change gives the settings a tag")
	}

	if _, err := s.engine.Accounts.UpdateSettings(t.Context(), a.ID, account.Settings{}); err != nil {
		t.Errorf("settings cannot be set anew: %v", err)
	}

	s.get(t, "/v1/invoices")
}
