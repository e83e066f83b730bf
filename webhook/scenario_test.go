package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// scenario is two processes over one store and a network.
type scenario struct {
	t        *testing.T
	merchant *merchant
	chain    *sim.Chain
	engine   *payments.Engine
	other    *payments.Engine
	account  account.Account
	owner    event.Owner
	refusing chain.Address // the signer signs nothing for it
	prices   *rate.Fixed

	mu   sync.Mutex
	seen map[string][]event.Event // what OnEvent saw of each object, in the order it saw it
}

func newScenario(t *testing.T, m *merchant) *scenario {
	t.Helper()
	s := &scenario{t: t, merchant: m, seen: map[string][]event.Event{}}
	s.chain = sim.New(sim.Config{NoFinality: true})
	s.refusing = s.chain.NewAddress()
	signer := sim.NewSigner(7, func(r chain.SignRequest) error {
		if slices.ContainsFunc(r.Intent.Outputs, func(o chain.Output) bool { return o.To == s.refusing }) {
			return chain.Refuse("policy")
		}

		return nil
	})
	fee := string(s.chain.NewAddress())
	shared := memory.New()
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2000", "USDC/USD": "1"}, time.Minute, nil)
	s.must(err)

	s.prices = prices
	boot := func() *payments.Engine {
		e, err := payments.New(payments.Config{
			Store:        shared,
			Drivers:      []payments.ChainDriver{s.chain},
			Signer:       signer,
			Rates:        prices,
			BaseURL:      "https://pay.example.com",
			SecretKey:    bytes.Repeat([]byte{7}, 32),
			FeeAddresses: map[string]string{"simnet": fee},
			OnEvent:      s.onEvent,
			WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Log:          slog.New(slog.DiscardHandler),
		})
		s.must(err)

		return e
	}
	s.engine, s.other = boot(), boot()

	s.account, err = s.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	s.must(err)
	s.owner = event.Owner{AccountID: s.account.ID}
	s.chain.Mine(10)

	return s
}

// onEvent notes an event. It may run again for a transaction that is run again: then what it saw
// before did not happen.
func (s *scenario) onEvent(_ context.Context, _ payments.Tx, ev event.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	of := s.seen[ev.ObjectID]

	again := slices.IndexFunc(of, func(e event.Event) bool { return e.Sequence >= ev.Sequence })
	if again >= 0 {
		of = of[:again]
	}

	s.seen[ev.ObjectID] = append(of, ev)

	return nil
}

func (s *scenario) must(err error) {
	s.t.Helper()

	if err != nil {
		s.t.Fatalf("unexpected error: %v", err)
	}
}

// until mines a block every 2 seconds until the condition holds.
func (s *scenario) until(what string, done func() bool) {
	s.t.Helper()

	for range 3000 {
		if done() {
			return
		}

		time.Sleep(2 * time.Second)
		s.chain.Mine(1)
	}

	s.t.Fatalf("never came true: %s", what)
}

// waitForEvent waits until an event of a type happened to an object.
func (s *scenario) waitForEvent(typ event.Type, objectID string) {
	s.t.Helper()
	s.until(fmt.Sprintf("%s of %s", typ, objectID), func() bool {
		found, _, err := s.engine.Webhooks.ListEvents(
			s.t.Context(),
			event.Filter{Owner: s.owner, Types: []event.Type{typ}, ObjectID: objectID, Limit: 1},
		)
		s.must(err)

		return len(found) > 0
	})
}

// sell makes an invoice of a coin and returns it with its address.
func (s *scenario) sell() (invoice.Invoice, chain.Address) {
	s.t.Helper()
	inv, err := s.engine.Invoices.Create(s.t.Context(), invoice.CreateParams{
		Owner:   s.owner,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	s.must(err)

	return inv, inv.Options[0].Address
}

func (s *scenario) paymentOf(invoiceID, depositID string) (p invoice.Payment) {
	s.t.Helper()
	s.until("a payment was detected", func() bool {
		found, _, err := s.engine.Invoices.ListPayments(
			s.t.Context(),
			invoice.PaymentFilter{
				Owner:            s.owner,
				InvoiceID:        invoiceID,
				DepositAddressID: depositID,
				Limit:            10,
			},
		)
		s.must(err)

		if len(found) > 0 {
			p = found[0]
		}

		return len(found) > 0
	})

	return p
}

func (s *scenario) settlementOf(paymentID string, status settlement.Status) (of settlement.Settlement) {
	s.t.Helper()
	s.until("the settlement is "+string(status), func() bool {
		found, err := s.engine.Settlements.OfPayments(s.t.Context(), []string{paymentID})
		s.must(err)

		if len(found) > 0 {
			of = found[0]
		}

		return of.Status == status
	})

	return of
}

// reorgOut has the block of a payment leave the chain, and the network forget its transaction.
func (s *scenario) reorgOut(p invoice.Payment) {
	s.t.Helper()
	p, err := s.engine.Invoices.Payment(s.t.Context(), s.owner, p.ID)
	s.must(err)
	head, err := s.chain.Head(s.t.Context())
	s.must(err)
	s.chain.Fork(
		sim.Fork{
			Depth: head.Tip.Height - p.Block.Height + 1,
			Fate:  sim.ReturnToPool,
			Each:  map[string]sim.OrphanFate{p.TxHash: sim.DropOrphan},
		},
	)
}

// play runs the scenario in parts. Between them no process runs, so that days pass in no time.
func (s *scenario) play() {
	var hooks map[string]string

	s.run(func() {
		hooks = s.endpoints()
		s.until("the network is followed", func() bool {
			_, followed, err := internal.Of(s.engine).Store().Cursor(s.t.Context(), "simnet")
			s.must(err)

			return followed
		})
		s.waitForEvent(event.Ping, hooks["all"])
		s.deposits()
		s.unpriced()
		s.reversal()
		s.moneyOut()
		s.waitForEvent(event.WebhookEndpointDisabled, hooks["gone"])
	})
	s.days()

	for tries := 0; ; tries++ { // ten over three days
		if did, err := internal.Of(s.engine).Deliverer.Step(s.t.Context()); err != nil {
			s.t.Fatal(err)
		} else if did {
			continue
		}

		e, err := s.engine.Webhooks.GetEndpoint(s.t.Context(), s.owner, hooks["broken"])
		s.must(err)
		n, err := internal.Of(s.engine).Store().PendingDeliveries(s.t.Context(), hooks["all"])
		s.must(err)

		if e.Status == webhook.Failing && n == 0 {
			return
		}

		if tries > 100 {
			s.t.Fatalf("the broken endpoint is %s, and %d deliveries are left", e.Status, n)
		}

		time.Sleep(time.Hour)
	}
}

// run runs both processes during a part.
func (s *scenario) run(part func()) {
	ctx, stop := context.WithCancel(s.t.Context())

	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	for _, e := range []*payments.Engine{s.engine, s.other} {
		running.Go(func() {
			if err := e.Run(ctx); err != nil {
				s.t.Errorf("Run: %v", err)
			}
		})
	}

	part()
}

func (s *scenario) endpoints() map[string]string {
	ids := map[string]string{}

	for path, types := range map[string][]event.Type{
		"all":    {"*"},
		"broken": {event.InvoiceCanceled},
		"gone":   {event.InvoiceCreated},
	} {
		e, secret, err := s.engine.Webhooks.CreateEndpoint(
			s.t.Context(),
			webhook.EndpointParams{Owner: s.owner, URL: s.merchant.URL + "/" + path, Events: types},
		)
		s.must(err)

		ids[path] = e.ID
		if path == "all" {
			s.merchant.mu.Lock()
			s.merchant.secret = secret
			s.merchant.mu.Unlock()
		}
	}

	_, err := s.engine.Webhooks.Test(s.t.Context(), s.owner, ids["all"])
	s.must(err)

	return ids
}

// deposits: two that are held because the master wallet cannot pay for their release. One of them
// leaves the chain, the other is released once it can.
func (s *scenario) deposits() {
	var payments []invoice.Payment

	for range 2 {
		d, err := s.engine.Invoices.CreateDeposit(
			s.t.Context(),
			invoice.DepositParams{Owner: s.owner, Network: "simnet", Name: "customer 7"},
		)
		s.must(err)
		s.chain.Pay(d.Address, "USDX", chain.Pow10(6).Mul(400))
		p := s.paymentOf("", d.ID)
		s.waitForEvent(event.DepositPaymentConfirmed, p.ID)
		s.settlementOf(p.ID, settlement.Held)
		payments = append(payments, p)
	}

	s.reorgOut(payments[1])
	s.settlementOf(payments[1].ID, settlement.Failed)
	master, err := internal.Of(s.engine).Transactions.MasterWallet(s.t.Context(), "simnet", s.account.Index)
	s.must(err)
	s.chain.Fund(master.Address, "SIM", chain.Pow10(19))
	s.settlementOf(payments[0].ID, settlement.Released)
	s.waitForEvent(event.DepositPaymentReleased, payments[0].ID)
}

// unpriced: a deposit confirms while there is no price of its asset, and is priced once there is one again.
func (s *scenario) unpriced() {
	d, err := s.engine.Invoices.CreateDeposit(
		s.t.Context(),
		invoice.DepositParams{Owner: s.owner, Network: "simnet", Name: "customer 8"},
	)
	s.must(err)
	s.must(s.prices.Set("USDC/USD", ""))
	time.Sleep(2 * time.Minute) // no price is fresh any more
	s.chain.Pay(d.Address, "USDX", chain.Pow10(6).Mul(5))

	p := s.paymentOf("", d.ID)
	s.waitForEvent(event.DepositPaymentConfirmed, p.ID)
	s.must(s.prices.Set("USDC/USD", "1"))
	s.waitForEvent(event.PaymentPriced, p.ID)
}

// reversal: an invoice is paid and its payment released; then the block of the payment leaves the chain.
func (s *scenario) reversal() {
	inv, at := s.sell()
	s.chain.Pay(at, "SIM", chain.Pow10(18))
	s.waitForEvent(event.InvoicePending, inv.ID)
	s.waitForEvent(event.InvoicePaid, inv.ID)
	p := s.paymentOf(inv.ID, "")
	released := s.settlementOf(p.ID, settlement.Released)
	s.reorgOut(p)
	s.waitForEvent(event.PaymentOrphaned, p.ID)
	s.waitForEvent(event.InvoicePaymentReversed, inv.ID)
	s.waitForEvent(event.SettlementReverted, released.ID)
}

// days: invoices that are canceled, expire and are paid too little; a payment that is replaced
// before it is in a block, and counts as dropped once no pool had it for a day; and coin that
// a contract sent, which is found by the balance before the invoice expires, and whose transaction
// is named later.
func (s *scenario) days() {
	var (
		expired, short, dropped, hidden invoice.Invoice
		lost                            invoice.Payment
		unseen                          string
	)

	s.run(func() {
		canceled, _ := s.sell()
		_, err := s.engine.Invoices.Cancel(s.t.Context(), s.owner, canceled.ID)
		s.must(err)

		var at chain.Address

		expired, _ = s.sell()
		short, at = s.sell()
		s.chain.Pay(at, "SIM", chain.Pow10(17))
		s.waitForEvent(event.InvoicePaymentConfirmed, s.paymentOf(short.ID, "").ID)
		hidden, at = s.sell()
		unseen = s.chain.PayInternal(at, chain.Pow10(18))
		dropped, at = s.sell()
		hash := s.chain.Pay(at, "SIM", chain.Pow10(18))
		s.untilWithoutBlocks("it is seen in the pool", func() bool {
			found, _, err := s.engine.Invoices.ListPayments(
				s.t.Context(),
				invoice.PaymentFilter{Owner: s.owner, InvoiceID: dropped.ID, Limit: 1},
			)
			s.must(err)

			return len(found) > 0
		})
		s.chain.Replace(hash)
		s.until(
			"it is out of sight",
			func() bool { lost = s.paymentOf(dropped.ID, ""); return !lost.LostAt.IsZero() },
		)
	})
	time.Sleep(25 * time.Hour)
	s.run(func() {
		s.waitForEvent(event.InvoiceExpired, expired.ID)
		s.waitForEvent(event.InvoiceUnderpaid, short.ID)
		s.waitForEvent(event.PaymentDropped, lost.ID)
		found := s.paymentOf(hidden.ID, "")
		_, err := s.engine.Invoices.Hint(s.t.Context(), hidden.ID, unseen)
		s.must(err)
		s.waitForEvent(event.PaymentTransactionAttached, found.ID)
	})
}

// untilWithoutBlocks waits without mining.
func (s *scenario) untilWithoutBlocks(what string, done func() bool) {
	s.t.Helper()

	for range 100 {
		if done() {
			return
		}

		time.Sleep(time.Second)
	}

	s.t.Fatalf("never came true: %s", what)
}

// moneyOut: payouts that arrive and fail, and refunds that do.
func (s *scenario) moneyOut() {
	pay := func(to chain.Address) payout.Payout {
		p, err := s.engine.Payouts.Create(s.t.Context(), payout.Params{
			Owner:       s.owner,
			Network:     "simnet",
			Asset:       "SIM",
			Amount:      chain.Pow10(15),
			Destination: string(to),
			RequestedBy: payout.Requester{Type: "user", ID: "test"},
		})
		s.must(err)

		return p
	}
	p := pay(s.chain.NewAddress())
	s.waitForEvent(event.PayoutConfirmed, p.ID)
	s.waitForEvent(event.PayoutFailed, pay(s.refusing).ID)

	inv, at := s.sell()
	s.chain.Pay(at, "SIM", chain.Pow10(18))
	s.waitForEvent(event.InvoicePaid, inv.ID)

	refund := func(to chain.Address) payout.Refund {
		r, err := s.engine.Payouts.CreateRefund(
			s.t.Context(),
			payout.RefundParams{
				Owner:       s.owner,
				InvoiceID:   inv.ID,
				Destination: string(to),
				RequestedBy: payout.Requester{Type: "user", ID: "test"},
			},
		)
		s.must(err)

		return r
	}
	s.waitForEvent(event.RefundFailed, refund(s.refusing).ID)
	s.waitForEvent(event.RefundSucceeded, refund(s.chain.NewAddress()).ID)
	s.waitForEvent(event.InvoiceRefunded, inv.ID)
}
