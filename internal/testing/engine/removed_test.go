package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
)

// removal is a service whose second process does not serve the network of the first any more.
type removal struct {
	t             *testing.T
	now           time.Time
	config        payments.Config
	chain         *sim.Chain
	before, after *payments.Engine
	owner         event.Owner
}

func newRemoval(t *testing.T, epoch uint64) *removal {
	t.Helper()

	r := &removal{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	clock := func() time.Time { return r.now }
	r.chain = sim.New(sim.Config{Clock: clock})
	r.config = config(t, r.chain)
	r.config.Now, r.config.Epoch = clock, epoch

	r.before = r.start(r.config)

	a, err := r.before.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	r.owner = event.Owner{AccountID: a.ID}
	r.stepAll(r.before)

	master, err := internal.Of(r.before).Transactions.MasterWallet(t.Context(), "simnet", a.Index)
	if err != nil {
		t.Fatal(err)
	}

	for symbol, amount := range map[string]chain.Amount{"SIM": chain.Pow10(20), "USDX": chain.Pow10(9)} {
		r.chain.Fund(master.Address, symbol, amount)
	}

	r.chain.Mine(5)
	r.stepAll(r.before)

	return r
}

// start returns a process.
func (r *removal) start(c payments.Config) *payments.Engine {
	r.t.Helper()

	e, err := payments.New(c)
	if err != nil {
		r.t.Fatal(err)
	}

	return e
}

// remove starts the process that serves another network only, in an epoch.
func (r *removal) remove(epoch uint64) {
	r.t.Helper()

	other := sim.DefaultNetwork()
	other.Slug, other.CAIP2 = "othernet", "sim:2"

	r.config.Drivers = []payments.ChainDriver{sim.New(sim.Config{Network: other, Clock: r.config.Now})}
	r.config.FeeAddresses, r.config.Epoch = nil, epoch

	r.after = r.start(r.config)
	r.stepAll(r.after)
}

func (r *removal) stepAll(e *payments.Engine) {
	r.t.Helper()

	for range 5 {
		if _, err := e.Step(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

// pass has the second process work until a time is over: long enough to see that the first one stands still. also is
// what the first one does meanwhile.
func (r *removal) pass(d time.Duration, also func()) {
	r.t.Helper()

	r.now = r.now.Add(d - 5*time.Minute)
	for range 30 {
		r.now = r.now.Add(10 * time.Second)

		also()

		if _, err := r.after.Step(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

func nothing() {}

func (r *removal) pay(asset string) payout.Payout {
	r.t.Helper()

	p, err := r.before.Payouts.Create(r.t.Context(), payout.Params{
		Owner:       r.owner,
		Network:     "simnet",
		Asset:       asset,
		Amount:      chain.Pow10(6),
		Destination: string(r.chain.NewAddress()),
		RequestedBy: payout.Requester{Type: "user", ID: "u"},
	})
	if err != nil {
		r.t.Fatal(err)
	}

	return p
}

// wantFailed fails the test unless a payout failed with a code, and reserves nothing beyond the next balance read.
func (r *removal) wantFailed(id, code string) {
	r.t.Helper()

	p, err := r.after.Payouts.Get(r.t.Context(), r.owner, id)
	if err != nil || p.Status != payout.Failed || p.FailureCode != code {
		r.t.Errorf("the payout is %s %s (%v), want failed %s", p.Status, p.FailureCode, err, code)
	}

	rows, err := r.config.Store.Balances(r.t.Context(), r.owner)
	if err != nil || len(rows) == 0 {
		r.t.Fatalf("balances: %v (%v)", rows, err)
	}

	for _, b := range rows {
		for _, of := range b.Reservations {
			if of.ObjectID == id && !of.Unreserved {
				r.t.Errorf("%s base units of %s stay reserved", of.Amount, b.AssetID)
			}
		}
	}
}

func (r *removal) wantStatus(id string, status payout.Status) {
	r.t.Helper()

	if p, err := r.after.Payouts.Get(r.t.Context(), r.owner, id); err != nil || p.Status != status {
		r.t.Errorf("the payout is %s %s (%v), want %s", p.Status, p.FailureCode, err, status)
	}
}

// TestPayoutsOfARemovedNetworkEnd: what was never signed is canceled, or goes stale.
func TestPayoutsOfARemovedNetworkEnd(t *testing.T) {
	for _, asset := range []string{"SIM", "USDX"} {
		r := newRemoval(t, 0)
		canceled, stale := r.pay(asset), r.pay(asset)
		r.remove(0)

		if _, err := r.after.Payouts.Cancel(t.Context(), r.owner, canceled.ID); err != nil {
			t.Fatal(err)
		}

		r.pass(payout.GiveUpAfter-time.Minute, nothing)
		r.wantStatus(stale.ID, payout.Pending)

		r.pass(10*time.Minute, nothing)
		r.wantFailed(canceled.ID, "canceled")
		r.wantFailed(stale.ID, "stale")
		r.wantWaiting(0)
	}
}

// TestSignedPayoutOfARemovedNetworkWaits: only the network can say what became of it.
func TestSignedPayoutOfARemovedNetworkWaits(t *testing.T) {
	r := newRemoval(t, 0)
	signed := r.pay("SIM")
	r.stepAll(r.before)
	r.remove(0)

	_, err := r.after.Payouts.Cancel(t.Context(), r.owner, signed.ID)
	if fault.Code(err) != "payout_not_pending" {
		t.Errorf("canceling: %v", err)
	}

	r.pass(2*payout.GiveUpAfter, nothing)
	r.wantStatus(signed.ID, payout.Processing)
	r.wantWaiting(1)
}

// wantWaiting fails the test unless Health of the second process names so many wallets that wait for the network.
func (r *removal) wantWaiting(want int) {
	r.t.Helper()

	report, err := r.after.Health(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}

	named := 0

	for _, w := range report.Wallets {
		if w.Network == "simnet" && w.AccountID == r.owner.AccountID && w.Reason != "" {
			named++
		}
	}

	if named != want {
		r.t.Errorf("Health names %+v, want %d of the network", report.Wallets, want)
	}
}

// TestRestoredPayoutOfARemovedNetworkWaits: lost records may have sent it, and nobody has compared its wallet, whether
// the epoch begins while the network is served or not.
func TestRestoredPayoutOfARemovedNetworkWaits(t *testing.T) {
	for _, served := range []bool{true, false} {
		r := newRemoval(t, 0)
		p := r.pay("SIM")

		if served {
			restored := r.config
			restored.Epoch = 1

			r.stepAll(r.start(restored))
		}

		r.remove(1)

		_, err := r.after.Payouts.Cancel(t.Context(), r.owner, p.ID)
		if fault.Code(err) != "payout_awaiting_review" {
			t.Errorf("canceling, with the network served: %v: %v", served, err)
		}

		r.pass(2*payout.GiveUpAfter, nothing)
		r.wantStatus(p.ID, payout.Pending)
		r.wantWaiting(1)
	}
}

// TestServedElsewherePayoutWaits: another process, which serves the network, decides what is stale.
func TestServedElsewherePayoutWaits(t *testing.T) {
	r := newRemoval(t, 0)
	p := r.pay("SIM")
	r.remove(0)

	r.pass(2*payout.GiveUpAfter, func() {
		if _, err := internal.Of(r.before).Follow(t.Context(), "simnet"); err != nil {
			t.Fatal(err)
		}
	})
	r.wantStatus(p.ID, payout.Pending)
	r.wantWaiting(0)
}

// TestInvoiceOfARemovedNetworkExpires: nobody reads the network, so there is nothing that the invoice could wait for.
func TestInvoiceOfARemovedNetworkExpires(t *testing.T) {
	r := newRemoval(t, 0)

	inv, err := r.before.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner:   r.owner,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	if err != nil || !inv.Options[0].Selected() {
		t.Fatalf("the invoice is %+v: %v", inv, err)
	}

	r.remove(0)
	r.pass(inv.ExpiresAt.Sub(r.now)-time.Minute, nothing)

	if inv, err = r.after.Invoices.Get(
		t.Context(),
		r.owner,
		inv.ID,
	); err != nil ||
		inv.Status != invoice.Open {
		t.Errorf("before its time is over it is %s: %v", inv.Status, err)
	}

	r.pass(10*time.Minute, nothing)

	if inv, err = r.after.Invoices.Get(
		t.Context(),
		r.owner,
		inv.ID,
	); err != nil ||
		inv.Status != invoice.Expired {
		t.Errorf("once its time is over it is %s: %v", inv.Status, err)
	}
}

// keyless is a signer without keys.
type keyless struct{}

func (keyless) PublicKey(context.Context, chain.KeyRef) (chain.PublicKey, error) {
	return chain.PublicKey{}, chain.Refuse("unknown_key")
}

func (keyless) Sign(context.Context, chain.SignRequest) ([][]byte, error) {
	return nil, chain.Refuse("unknown_key")
}

// TestNetworkServedLaterPaysNothingTwice: what lost records may have sent waits for a person also where the network was
// not served, or its keys were missing, when the epoch began. Its process need not have been given the epoch.
func TestNetworkServedLaterPaysNothingTwice(t *testing.T) {
	for name, epoch := range map[string]uint64{"of the epoch": 1, "that was not given the epoch": 0} {
		for _, served := range []bool{false, true} {
			r := newRemoval(t, 0)
			older := r.pay("SIM")
			later := r.config
			later.Epoch = epoch

			if served {
				first := r.config
				first.Epoch, first.Signer = 1, keyless{}
				r.after = r.start(first)
				r.stepAll(r.after)
				r.wantStatus(older.ID, payout.Pending)
			} else {
				r.remove(1)
			}

			r.after = r.start(later)

			_, err := r.after.Payouts.Cancel(t.Context(), r.owner, older.ID)
			if fault.Code(err) != "payout_awaiting_review" {
				t.Errorf("canceling by a process %s: %v", name, err)
			}

			r.stepAll(r.after)
			r.wantStatus(older.ID, payout.Pending)

			if err := r.after.Unfreeze(t.Context(), "simnet", ""); err != nil {
				t.Fatal(err)
			}

			r.stepAll(r.after)
			r.wantStatus(older.ID, payout.Processing)
		}
	}
}

// TestNetworkComparedBeforeItSigns: a wallet that a person compared while nothing froze it is not frozen later.
func TestNetworkComparedBeforeItSigns(t *testing.T) {
	r := newRemoval(t, 0)
	later := r.config
	later.Epoch = 1

	r.remove(1)
	r.after = r.start(later)

	if err := r.after.Unfreeze(t.Context(), "simnet", ""); err != nil {
		t.Fatal(err)
	}

	p := r.pay("SIM")
	r.stepAll(r.after)
	r.wantStatus(p.ID, payout.Processing)
}

// TestSecondEpochHoldsWhatTheFirstFroze: a wallet that nobody compared since an earlier epoch froze it is frozen anew,
// as lost records may have sent what was made between the two.
func TestSecondEpochHoldsWhatTheFirstFroze(t *testing.T) {
	r := newRemoval(t, 0)
	later := r.config
	first := r.config
	first.Epoch, later.Epoch = 1, 2

	r.stepAll(r.start(first))

	r.now = r.now.Add(time.Hour)
	between := r.pay("SIM")
	r.now = r.now.Add(time.Hour)

	r.remove(2)

	for _, served := range []bool{false, true} {
		if served {
			r.after = r.start(later)
			r.stepAll(r.after)
		}

		_, err := r.after.Payouts.Cancel(t.Context(), r.owner, between.ID)
		if fault.Code(err) != "payout_awaiting_review" {
			t.Errorf("canceling, with the network served %t: %v", served, err)
		}
	}

	r.wantStatus(between.ID, payout.Pending)
}

// TestLaterPayoutOfALateNetworkIsCanceled: what was made since the epoch began was sent by no lost records, also where
// the wallet is frozen later.
func TestLaterPayoutOfALateNetworkIsCanceled(t *testing.T) {
	r := newRemoval(t, 0)
	later := r.config
	later.Epoch = 1

	r.remove(1)

	r.now = r.now.Add(time.Hour)
	made := r.pay("SIM")
	r.now = r.now.Add(time.Minute)
	r.after = r.start(later)
	r.stepAll(r.after)

	if _, err := r.after.Payouts.Cancel(t.Context(), r.owner, made.ID); err != nil {
		t.Errorf("canceling: %v", err)
	}
}
