package httpapi_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	faults "github.com/seed-8ee7f392/payments/fault"
)

// TestApprovalsAndCancelsRace sends approvals by two keys and a cancel of the same payouts at once, while the engine
// works. The ledger of the test is what was answered: a payout that was canceled is not paid, one that was not is
// paid once.
func TestApprovalsAndCancelsRace(t *testing.T) {
	stores(t, func(t *testing.T, db payments.Store) {
		s := newApprovingShopOn(t, db)
		second := s.newKey(t, account.KeyParams{Scopes: []account.Scope{account.PayoutsApprove}})

		const races = 8

		canceled := make([]bool, races)
		approved := make([]bool, races)
		amounts := make([]chain.Amount, races)
		ids := make([]string, races)

		for round := range races {
			amounts[round] = chain.Pow10(18).Add(chain.Units(1 << round)) // each sum says which were paid
			ids[round] = s.pay(t, amounts[round])["id"].(string)
		}

		var (
			mu  sync.Mutex
			all sync.WaitGroup
		)

		send := func(round int, action, key string) {
			all.Go(func() {
				path := "/v1/payouts/" + ids[round] + "/" + action
				got := s.do(t, request{method: "POST", path: path, key: key})

				mu.Lock()
				defer mu.Unlock()

				switch {
				case got.status == http.StatusOK && action == "cancel":
					canceled[round] = true
				case got.status == http.StatusOK:
					approved[round] = true
				case got.status != http.StatusConflict:
					t.Errorf("%s is answered %d: %s", action, got.status, got.body)
				}
			})
		}

		for round := range races {
			send(round, "approve", s.approves)
			send(round, "cancel", s.pays)
			send(round, "approve", second)
			send(round, "approve", s.approves)
		}

		for range 20 {
			if _, err := s.engine.Step(t.Context()); err != nil && !errors.Is(err, faults.Unavailable) &&
				!errors.Is(err, faults.Conflict) {
				t.Error(err)
			}
		}

		all.Wait()
		s.work(t)

		var due chain.Amount

		for round := range races {
			status, _ := s.status(t, ids[round])

			switch {
			case canceled[round] && status != "failed", !canceled[round] && status != "confirmed":
				t.Errorf(
					"payout %d, canceled %v, approved %v: %s",
					round,
					canceled[round],
					approved[round],
					status,
				)
			case !canceled[round]:
				due = due.Add(amounts[round])
			}
		}

		if got := s.network.Balance(chain.Address(s.there), "SIM"); got != due {
			t.Errorf("%s arrived, %s was approved and not canceled", got, due)
		}
	})
}

// TestWhoCannotApprove refuses keys of other accounts and modes, revoked and expired ones, and an Idempotency-Key that
// was used for another action.
func TestWhoCannotApprove(t *testing.T) {
	stores(t, func(t *testing.T, db payments.Store) {
		s := newApprovingShopOn(t, db)
		id := s.pay(t, chain.Pow10(18))["id"].(string)
		approves := account.KeyParams{Scopes: []account.Scope{account.PayoutsApprove}}

		other := &shop{engine: s.engine, handler: s.handler}
		other.enter(t)

		revoked := s.newKey(t, approves)

		k, _, err := storeOf(s.shop).KeyByHash(t.Context(), account.HashKey(revoked))
		if err != nil {
			t.Fatal(err)
		}

		if _, err := s.engine.Accounts.RevokeKey(t.Context(), s.account.ID, k.ID); err != nil {
			t.Fatal(err)
		}

		expired := approves
		expired.ExpiresAt = s.now.Add(time.Second)
		expires := s.newKey(t, expired)
		live := approves
		live.Livemode = true

		s.now = s.now.Add(time.Minute)

		for name, c := range map[string]struct {
			key    string
			status int
			code   string
		}{
			"another account":  {other.newKey(t, approves), 404, "resource_missing"},
			"another mode":     {s.newKey(t, live), 404, "resource_missing"},
			"a revoked key":    {revoked, 401, "api_key_revoked"},
			"an expired key":   {expires, 401, "api_key_expired"},
			"no key":           {"-", 401, "api_key_required"},
			"who requested it": {s.pays, 403, "approval_by_requester"},
		} {
			if f := s.approve(t, id, c.key).refused(t, c.status); f.Code != c.code {
				t.Errorf("%s: %+v", name, f)
			}
		}

		// One Idempotency-Key is one request.
		once := header("Idempotency-Key", "once")
		approve := request{
			method: "POST",
			path:   "/v1/payouts/" + id + "/approve",
			key:    s.approves,
			header: once,
		}
		first := s.ok(t, s.do(t, approve))

		cancel := request{
			method: "POST",
			path:   "/v1/payouts/" + id + "/cancel",
			key:    s.approves,
			header: once,
		}
		if f := s.do(t, cancel).refused(t, 403); f.Code != "scope_missing" {
			t.Errorf("%+v", f)
		}

		cancel.key = s.pays
		if got := s.do(t, cancel); got.status < 400 || got.status >= 500 {
			t.Errorf("a cancel with the approval's Idempotency-Key: %d %s", got.status, got.body)
		}

		again := s.ok(t, s.do(t, approve))
		if again["approval"].(map[string]any)["approved_at"] != first["approval"].(map[string]any)["approved_at"] {
			t.Errorf("approved again: %v, then %v", first, again)
		}

		s.work(t)

		if got := s.network.Balance(chain.Address(s.there), "SIM"); got != chain.Pow10(18) {
			t.Errorf("%s arrived", got)
		}
	})
}
