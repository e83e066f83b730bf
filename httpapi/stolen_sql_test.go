//go:build unix

package httpapi_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/httpapi"
)

var oldSecret, newSecret = bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)

// stolenShop is a shop whose database somebody changes by plain SQL.
type stolenShop struct {
	*approvingShop
	db   *sql.DB
	json string // the cast to the type of its documents
	mine string // the secret of a key of the thief's own
}

// stolenShops runs a test over each SQL database.
func stolenShops(t *testing.T, f func(t *testing.T, s *stolenShop)) {
	drivers := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}

	for _, kind := range storeKinds {
		driver := drivers[kind.name]
		if driver == "" {
			continue // it has no SQL
		}

		t.Run(kind.name, func(t *testing.T) {
			name := kind.create(t)
			s := &stolenShop{approvingShop: newApprovingShopOn(t, kind.open(t, name))}

			if s.json = "TEXT"; kind.name == "postgres" {
				s.json = "JSON"
			}

			var err error
			if s.db, err = sql.Open(driver, name); err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() { _ = s.db.Close() })
			f(t, s)
		})
	}
}

// exec runs a statement that changes rows.
func (s *stolenShop) exec(t *testing.T, statement string, args ...any) {
	t.Helper()

	result, err := s.db.ExecContext(t.Context(), statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}

	if n, err := result.RowsAffected(); err == nil && n == 0 && strings.HasPrefix(statement, "UPDATE") {
		t.Fatalf("%s changed nothing", statement)
	}

	s.now = s.now.Add(time.Minute) // nothing that a process remembers of keys holds so long
}

// asks returns the status of a list that a key asks for.
func (s *stolenShop) asks(t *testing.T, key string) int {
	t.Helper()
	return s.do(t, request{method: "GET", path: "/v1/invoices", key: key}).status
}

// idOf returns the id of a key.
func (s *stolenShop) idOf(t *testing.T, secret string) string {
	t.Helper()

	k, _, err := storeOf(s.shop).KeyByHash(t.Context(), account.HashKey(secret))
	if err != nil {
		t.Fatal(err)
	}

	return k.ID
}

// No statement makes an API key that works, or widens one.
func TestSQLMakesNoAPIKey(t *testing.T) {
	reads := []account.Scope{account.InvoicesRead}

	for name, change := range map[string]func(t *testing.T, s *stolenShop, mine, theirs string){
		"revived": func(t *testing.T, s *stolenShop, mine, _ string) {
			if _, err := s.engine.Accounts.RevokeKey(t.Context(), s.account.ID, mine); err != nil {
				t.Fatal(err)
			}

			s.exec(t, "UPDATE payments_api_keys SET revoked_at = NULL WHERE id = $1", mine)
		},
		"more scopes": func(t *testing.T, s *stolenShop, mine, theirs string) {
			s.exec(t, "UPDATE payments_api_keys SET scopes = "+
				"(SELECT scopes FROM payments_api_keys WHERE id = $1) WHERE id = $2", theirs, mine)
		},
		"more scopes and their tag": func(t *testing.T, s *stolenShop, mine, theirs string) {
			s.exec(t, "UPDATE payments_api_keys SET "+
				"scopes = (SELECT scopes FROM payments_api_keys WHERE id = $1), "+
				"mac = (SELECT mac FROM payments_api_keys WHERE id = $1) WHERE id = $2", theirs, mine)
		},
		"the secret of another row": func(t *testing.T, s *stolenShop, mine, theirs string) {
			s.exec(t, "UPDATE payments_api_keys SET hash = $1 WHERE id = $2", make([]byte, 32), mine)
			hash := account.HashKey(s.mine)
			s.exec(t, "UPDATE payments_api_keys SET hash = $1 WHERE id = $2", hash[:], theirs)
		},
		"live mode": func(t *testing.T, s *stolenShop, mine, _ string) {
			s.exec(t, "UPDATE payments_api_keys SET livemode = NOT livemode WHERE id = $1", mine)
		},
	} {
		t.Run(name, func(t *testing.T) {
			stolenShops(t, func(t *testing.T, s *stolenShop) {
				s.mine = s.newKey(t, account.KeyParams{Scopes: reads})
				if got := s.asks(t, s.mine); got != 200 {
					t.Fatalf("the key of one's own: %d", got)
				}

				change(t, s, s.idOf(t, s.mine), s.idOf(t, s.key))

				if got := s.asks(t, s.mine); got != 401 {
					t.Errorf("status %d", got)
				}
			})
		})
	}
}

// No statement has a payout signed that differs from what the service accepted.
func TestSQLSignsNoPayout(t *testing.T) {
	const untouched = "untouched"

	order := func(t *testing.T, s *stolenShop, old, changed string) {
		s.exec(t, "UPDATE payments_transactions SET instruction = "+
			"CAST(REPLACE(CAST(instruction AS TEXT), '"+old+"', '"+changed+"') AS "+s.json+")")
	}

	for name, change := range map[string]func(t *testing.T, s *stolenShop, id, thief string){
		untouched: func(t *testing.T, s *stolenShop, id, _ string) {
			s.exec(t, "UPDATE payments_payouts SET memo = memo WHERE id = $1", id)
		},
		"destination": func(t *testing.T, s *stolenShop, id, thief string) {
			s.exec(t, "UPDATE payments_payouts SET destination = $1 WHERE id = $2", thief, id)
			order(t, s, s.there, thief)
		},
		"destination of the order alone": func(t *testing.T, s *stolenShop, _, thief string) {
			order(t, s, s.there, thief)
		},
		"amount": func(t *testing.T, s *stolenShop, id, _ string) {
			s.exec(t, "UPDATE payments_payouts SET amount = $1 WHERE id = $2", chain.Pow10(19).String(), id)
			order(t, s, chain.Pow10(16).String(), chain.Pow10(19).String())
		},
		"settings that ask for no approval": func(t *testing.T, s *stolenShop, _, _ string) {
			other, err := s.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Mine"})
			if err != nil {
				t.Fatal(err)
			}

			s.exec(t, "UPDATE payments_accounts SET "+
				"settings = (SELECT settings FROM payments_accounts WHERE id = $1), "+
				"mac = (SELECT mac FROM payments_accounts WHERE id = $1) WHERE id = $2", other.ID, s.account.ID)
		},
		"another account": func(t *testing.T, s *stolenShop, id, _ string) {
			s.exec(t, "UPDATE payments_payouts SET account_id = '000000000000000000000000' WHERE id = $1", id)
		},
		"another account's wallet": func(t *testing.T, s *stolenShop, _, _ string) {
			s.exec(t, "UPDATE payments_accounts SET idx = idx + 1000 WHERE id = $1", s.account.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			stolenShops(t, func(t *testing.T, s *stolenShop) {
				thief := string(s.network.NewAddress())
				id := s.pay(t, chain.Pow10(16))["id"].(string)

				change(t, s, id, thief)
				s.work(t)

				p, err := storeOf(s.shop).PayoutByID(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}

				if name == untouched {
					if p.TxHash == "" {
						t.Errorf("it was not signed: %+v", p)
					}

					return
				}

				if p.TxHash != "" || !s.network.Balance(chain.Address(thief), "SIM").IsZero() {
					t.Errorf("it was signed: %+v", p)
				}
			})
		})
	}
}

// A row that was valid once is valid again: what SECURITY.md says of who kept an old row. The test holds the page to
// what is so, and fails when the risk is mended.
func TestSQLBringsAnOldRowBack(t *testing.T) {
	stolenShops(t, func(t *testing.T, s *stolenShop) {
		mine := s.newKey(t, account.KeyParams{Scopes: []account.Scope{account.InvoicesRead}})
		id := s.idOf(t, mine)

		s.exec(t, fmt.Sprintf("CREATE TABLE kept AS SELECT * FROM payments_api_keys WHERE id = '%s'", id))

		if _, err := s.engine.Accounts.RevokeKey(t.Context(), s.account.ID, id); err != nil {
			t.Fatal(err)
		}

		if got := s.asks(t, mine); got != 401 {
			t.Fatalf("a revoked key: %d", got)
		}

		s.exec(t, "DELETE FROM payments_api_keys WHERE id = $1", id)
		s.exec(t, "INSERT INTO payments_api_keys SELECT * FROM kept")

		if got := s.asks(t, mine); got != 200 {
			t.Errorf("status %d: SECURITY.md says that an old row comes back", got)
		}

		// Under a new SecretKey it does not, once Reseal ran without the row.
		s.exec(t, "DELETE FROM payments_api_keys WHERE id = $1", id)

		next := boot(
			t,
			storeOf(s.shop),
			&httpapi.Options{},
			func() time.Time { return s.now },
			newSecret,
			oldSecret,
		)
		if _, err := next.engine.Reseal(t.Context()); err != nil {
			t.Fatal(err)
		}

		rolled := boot(t, storeOf(s.shop), &httpapi.Options{}, func() time.Time { return s.now }, newSecret)

		s.exec(t, "INSERT INTO payments_api_keys SELECT * FROM kept")

		got := rolled.do(t, request{method: "GET", path: "/v1/invoices", key: mine})
		if got.status == 200 {
			t.Errorf("an old row outlives the SecretKey: %d", got.status)
		}
	})
}
