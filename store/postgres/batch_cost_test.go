package postgres_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file counts what it costs to read a block, whose payments are read and written together.

// till is a shop whose payments are read by a metered store.
type till struct {
	*meter
	chain  *sim.Chain
	engine *payments.Engine
	owner  event.Owner
}

func newTill(t *testing.T, m *meter) *till {
	t.Helper()

	network := sim.New(sim.Config{NoFinality: true})

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}

	engine, err := payments.New(payments.Config{
		Store:     m.st,
		Drivers:   []payments.ChainDriver{network},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}

	merchant, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	s := &till{meter: m, chain: network, engine: engine, owner: event.Owner{AccountID: merchant.ID}}

	if _, _, err := engine.Webhooks.CreateEndpoint(
		t.Context(),
		webhook.EndpointParams{
			Owner:  s.owner,
			URL:    "https://shop.example.com/hook",
			Events: []event.Type{"*"},
		},
	); err != nil {
		t.Fatal(err)
	}

	s.chain.Mine(5)
	s.follow()

	return s
}

// follow reads what there is to read.
func (s *till) follow() {
	s.t.Helper()

	for {
		did, err := internal.Of(s.engine).Follow(s.t.Context(), "simnet")
		if err != nil {
			s.t.Fatal(err)
		}

		if !did {
			return
		}
	}
}

// block mines a block, and returns how many round trips and commits it takes to read it.
func (s *till) block() (trips int, commits int64) {
	s.t.Helper()
	s.chain.Mine(1)

	before := s.writers()
	s.r.reset()

	if did, err := internal.Of(s.engine).Follow(s.t.Context(), "simnet"); err != nil || !did {
		s.t.Fatalf("a block was read: %t, %v", did, err)
	}

	return s.r.trips(), s.writers() - before
}

// sell has so many invoices paid in one block. It returns what it cost to read that block, and the one that confirms
// the payments.
func (s *till) sell(n int) (seen, confirmed int) {
	s.t.Helper()

	for range n {
		inv, err := s.engine.Invoices.Create(s.t.Context(), invoice.CreateParams{
			Owner:   s.owner,
			Price:   &invoice.Price{Currency: "USD", Amount: "12.50"},
			Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
		})
		if err != nil {
			s.t.Fatal(err)
		}

		s.chain.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
	}

	seen, once := s.block()
	_, between := s.block()
	confirmed, last := s.block()

	if once != 1 || between != 1 || last != 1 {
		s.t.Errorf("%d payments: the blocks took %d, %d and %d commits", n, once, between, last)
	}

	paid, _, err := s.engine.Invoices.ListPayments(s.t.Context(), invoice.PaymentFilter{
		Owner:    s.owner,
		Statuses: []invoice.PaymentStatus{invoice.Confirmed},
		Limit:    n,
	})
	if err != nil || len(paid) != n {
		s.t.Fatalf("%d of %d payments are confirmed, %v", len(paid), n, err)
	}

	return seen, confirmed
}

// TestBlockCostsTheSameForManyPayments: the round trips that a block takes do not grow with its payments. What they
// belong to is read at once, and written at once.
func TestBlockCostsTheSameForManyPayments(t *testing.T) {
	metered(t, func(t *testing.T, m *meter) {
		const many = 12

		s := newTill(t, m)
		s.sell(1) // statements are prepared
		s.sell(many)

		seenOne, confirmedOne := s.sell(1)
		seenMany, confirmedMany := s.sell(many)
		t.Logf(
			"a block with 1 payment: %d round trips when it is seen, %d when it confirms; with %d: %d and %d",
			seenOne, confirmedOne, many, seenMany, confirmedMany,
		)

		if seenMany > seenOne || confirmedMany > confirmedOne {
			t.Error("round trips grow with the payments")
		}

		if seenOne > mostSeen || confirmedOne > mostConfirmed {
			t.Errorf("at most %d and %d round trips are expected", mostSeen, mostConfirmed)
		}
	})
}

// What a block costs, in round trips, in which payments are seen, and in which they confirm. The last one asks whether
// older blocks are still to be read; where none are, the network is at rest without another step.
const mostSeen, mostConfirmed = 23, 22
