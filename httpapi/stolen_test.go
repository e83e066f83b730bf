package httpapi_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store"
)

// storeOf returns the shop's database, as somebody who stole its password has it.
func storeOf(s *shop) payments.Store {
	return internal.Of(s.engine).Store().(payments.Store)
}

// write changes the database without the engine.
func write(t *testing.T, db payments.Store, f func(ctx context.Context, tx store.Tx) error) {
	t.Helper()

	if err := db.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// rows returns a payout with its transaction.
func rows(ctx context.Context, tx store.Tx, id string) (payout.Payout, wallet.Transaction, error) {
	p, err := tx.PayoutByID(ctx, id)
	if err != nil {
		return p, wallet.Transaction{}, err
	}

	t, err := tx.Transaction(ctx, p.TransactionID)

	return p, t, err
}

// putRows stores a payout and its transaction, unless reading them failed.
func putRows(
	ctx context.Context,
	tx store.Tx,
	p payout.Payout,
	t wallet.Transaction,
	err error,
) error {
	if err == nil {
		err = tx.PutPayout(ctx, &p)
	}

	if err == nil {
		err = tx.PutTransaction(ctx, &t)
	}

	return err
}

// TestAStolenDatabaseSignsNoPayout changes, on every store, what decides about a queued payout: nothing of it is
// signed. Where an attack moves money to another payout's row, that one is not signed either.
func TestAStolenDatabaseSignsNoPayout(t *testing.T) {
	for _, kind := range storeKinds {
		t.Run(kind.name, func(t *testing.T) { testStolenPayouts(t, kind) })
	}
}

func testStolenPayouts(t *testing.T, kind storeKind) {
	thief := "thief"

	for name, change := range map[string]func(ctx context.Context, s *approvingShop, tx store.Tx, id string) error{
		"another destination": func(ctx context.Context, _ *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			p.Destination, t.Order.Outputs[0].To = chain.Address(thief), chain.Address(thief)

			return putRows(ctx, tx, p, t, err)
		},
		"another order": func(ctx context.Context, _ *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			t.Order.Outputs[0].To = chain.Address(thief)

			return putRows(ctx, tx, p, t, err)
		},
		"more": func(ctx context.Context, _ *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			p.Amount = p.Amount.Add(chain.Units(1))
			t.Order.Outputs[0].Amount = p.Amount

			return putRows(ctx, tx, p, t, err)
		},
		"as a sweep": func(ctx context.Context, _ *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			t.Kind, t.Order.Outputs[0].To = "sweep", chain.Address(thief)

			return putRows(ctx, tx, p, t, err)
		},
		"the tag of another payout": func(ctx context.Context, s *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			if err != nil {
				return err
			}

			other, err := tx.PayoutByID(ctx, s.other)
			p.MAC, p.Amount, t.Order.Outputs[0].Amount = other.MAC, other.Amount, other.Amount

			return putRows(ctx, tx, p, t, err)
		},
		"from another account's wallet": func(
			ctx context.Context,
			s *approvingShop,
			tx store.Tx,
			id string,
		) error {
			p, t, err := rows(ctx, tx, id)
			t.Order.From = s.victim

			return putRows(ctx, tx, p, t, err)
		},
		"as a sweep of another account's wallet": func(
			ctx context.Context,
			s *approvingShop,
			tx store.Tx,
			id string,
		) error {
			p, t, err := rows(ctx, tx, id)
			t.Kind, t.Order.Outputs[0].To, t.Order.From = "sweep", t.Order.From.Address, s.victim

			return putRows(ctx, tx, p, t, err)
		},
		"another network's asset": func(ctx context.Context, _ *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			p.AssetID = "000000000000000000000000"
			t.Order.Outputs[0].AssetID = p.AssetID

			return putRows(ctx, tx, p, t, err)
		},
		"a higher fee": func(ctx context.Context, _ *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			p.MaxNetworkFee = p.MaxNetworkFee.Mul(1_000_000)
			t.Order.MaxFee = p.MaxNetworkFee

			return putRows(ctx, tx, p, t, err)
		},
		"no tag": func(ctx context.Context, _ *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			p.MAC = nil

			return putRows(ctx, tx, p, t, err)
		},
		"an approval": func(ctx context.Context, s *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			p.Approval.ApprovedBy, p.Approval.ApprovedAt = "somebody", s.now
			t.DueAt = s.now

			return putRows(ctx, tx, p, t, err)
		},
		"no approval required": func(ctx context.Context, s *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			p.Approval.Required = false
			t.DueAt = s.now

			return putRows(ctx, tx, p, t, err)
		},
		"due without an approval": func(ctx context.Context, s *approvingShop, tx store.Tx, id string) error {
			p, t, err := rows(ctx, tx, id)
			t.DueAt = s.now

			return putRows(ctx, tx, p, t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApprovingShopOn(t, kind.fresh(t))
			s.other = s.pay(t, chain.Pow10(18).Mul(2))["id"].(string) // waits for its approval
			s.victim = s.anotherWallet(t)
			thief = string(s.network.NewAddress())

			amount := chain.Pow10(16) // needs no approval
			if name == "an approval" || name == "no approval required" || name == "due without an approval" {
				amount = chain.Pow10(18)
			}

			id := s.pay(t, amount)["id"].(string)
			write(t, storeOf(s.shop), func(ctx context.Context, tx store.Tx) error {
				return change(ctx, s, tx, id)
			})
			s.work(t)

			p, err := storeOf(s.shop).PayoutByID(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}

			want := "signer_refused:unauthorized"
			if name == "another network's asset" {
				want = "destination_not_payable" // the driver knows no such asset
			}

			if p.TxHash != "" || p.Status != payout.Pending && p.FailureCode != want {
				t.Errorf("%+v", p)
			}

			if got := s.network.Balance(chain.Address(thief), "SIM"); !got.IsZero() {
				t.Errorf("the thief got %s", got)
			}

			if got := s.network.Balance(s.victim.Address, "SIM"); got != chain.Pow10(20) {
				t.Errorf("another account has %s left", got)
			}
		})
	}
}

// anotherWallet returns the master wallet of another account, with coin.
func (s *approvingShop) anotherWallet(t *testing.T) chain.Party {
	t.Helper()

	a, err := s.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Victim"})
	if err != nil {
		t.Fatal(err)
	}

	party, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), "simnet", a.Index)
	if err != nil {
		t.Fatal(err)
	}

	s.network.Fund(party.Address, "SIM", chain.Pow10(20))

	return party
}
