package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// stepFor steps an engine for some time, a block every 5 s.
func stepFor(t *testing.T, e *Engine, node *sim.Chain, d time.Duration) {
	t.Helper()

	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
		if _, err := e.Step(t.Context()); err != nil {
			t.Error(err)
		}

		node.Mine(1)
	}
}

// attentionOf returns what Health shows of one kind of object.
func attentionOf(t *testing.T, e *Engine, object string) []health.Attention {
	t.Helper()

	report, err := e.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return slices.DeleteFunc(report.Attention, func(a health.Attention) bool { return a.Object != object })
}

// A release that the signer refuses says so in its settlement, in the log and in Health, which asks for a person.
func TestRefusedReleaseSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, log := sim.New(sim.Config{}), &bytes.Buffer{}
		e := newEngine(t, map[string]string{"ETH/USD": "1"}, Config{
			Store:   memory.New(),
			Log:     slog.New(slog.NewTextHandler(log, nil)),
			Drivers: []chain.Driver{node},
			Signer: sim.NewSigner(
				1,
				func(chain.SignRequest) error { return chain.Refuse("over_the_limit") },
			),
		})

		a, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
		if err != nil {
			t.Fatal(err)
		}

		inv, err := e.Invoices.Create(t.Context(), invoice.CreateParams{
			Owner:   event.Owner{AccountID: a.ID},
			Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(20)}},
		})
		if err != nil {
			t.Fatal(err)
		}

		node.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
		node.Mine(1)
		stepFor(t, e, node, 5*time.Minute)

		page, _, err := e.Settlements.List(t.Context(), settlement.Filter{Owner: inv.Owner})
		if err != nil || len(page) != 1 {
			t.Fatalf("%d settlements: %v", len(page), err)
		}

		shown := page[0].Resource()
		if shown.Status != settlement.Failed ||
			!strings.Contains(shown.ReasonMessage, "signer_refused:over_the_limit") {
			t.Errorf("the settlement is %s: %q", shown.Status, shown.ReasonMessage)
		}

		if !strings.Contains(log.String(), "signer_refused:over_the_limit") {
			t.Errorf("the log says %s", log)
		}

		named := attentionOf(t, e, "settlement")
		if len(named) != 1 || named[0].Count != 1 || named[0].Reason != "transaction_failed" ||
			named[0].Oldest != page[0].ID || named[0].Message != shown.ReasonMessage || !named[0].NeedsPerson() {
			t.Errorf("Health names %+v", named)
		}

		if report, err := e.Health(t.Context()); err != nil || !report.NeedsPerson() {
			t.Errorf("nobody is asked for: %v", err)
		}
	})
}

// A payout that hangs says why once it has waited for a minute, and no longer once it goes on. What the host's signer
// said is in the log alone, without what may be a secret.
func TestPayoutThatHangsSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, log, asleep := sim.New(sim.Config{}), &bytes.Buffer{}, true
		e := newEngine(t, nil, Config{
			Store:   memory.New(),
			Log:     slog.New(slog.NewTextHandler(log, nil)),
			Drivers: []chain.Driver{node},
			Signer: sim.NewSigner(1, func(chain.SignRequest) error {
				if asleep {
					return errors.New("the HSM is asleep: https://hsm.example/pin/1234")
				}

				return nil
			}),
		})

		s := newShop(t, e, node)
		created := time.Now()

		stepFor(t, e, node, 30*time.Second)

		shown := func() payout.Resource {
			p, err := e.Payouts.Get(context.Background(), s.payout.Owner, s.payout.ID)
			if err != nil {
				t.Fatal(err)
			}

			return p.Resource()
		}
		if p := shown(); p.ReasonMessage != "" || p.WaitingSince != "" {
			t.Errorf("within a minute it says %q since %s", p.ReasonMessage, p.WaitingSince)
		}

		stepFor(t, e, node, 3*time.Minute)

		p := shown()
		if p.Status != payout.Pending || !strings.HasPrefix(p.ReasonMessage, "signer_failed: ") ||
			p.WaitingSince != created.UTC().Format("2006-01-02T15:04:05.000Z") {
			t.Errorf("it is %s, and says %q since %s", p.Status, p.ReasonMessage, p.WaitingSince)
		}

		if strings.Contains(p.ReasonMessage, "HSM") || !strings.Contains(log.String(), "the HSM is asleep") ||
			strings.Contains(log.String(), "1234") {
			t.Errorf("the payout says %q, the log %s", p.ReasonMessage, log)
		}

		named := attentionOf(t, e, "payout")
		if len(named) != 1 || named[0].Reason != "signer_failed" || named[0].Oldest != p.ID ||
			named[0].NeedsPerson() {
			t.Errorf("Health names %+v", named)
		}

		asleep = false

		stepFor(t, e, node, 5*time.Minute)

		if p := shown(); p.Status != payout.Confirmed || p.ReasonMessage != "" || p.WaitingSince != "" {
			t.Errorf("at last it is %s, and says %q since %s", p.Status, p.ReasonMessage, p.WaitingSince)
		}

		if named := attentionOf(t, e, "payout"); len(named) > 0 {
			t.Errorf("Health still names %+v", named)
		}
	})
}
