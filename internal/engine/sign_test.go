package engine

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// stuckSigner signs for one account only once it is released, whatever becomes of the context of the call.
type stuckSigner struct {
	chain.Signer
	account    uint32
	release    chan struct{}
	calls, now atomic.Int64
}

func (s *stuckSigner) Sign(ctx context.Context, r chain.SignRequest) ([][]byte, error) {
	if r.Payloads[0].Key.Index == s.account {
		s.calls.Add(1)

		if s.now.Add(1) > 1 {
			panic("two calls for one wallet at the same time")
		}

		<-s.release
		s.now.Add(-1)
	}

	return s.Signer.Sign(context.WithoutCancel(ctx), r)
}

// shop is an account with a funded wallet and a payout.
type shop struct {
	account.Account
	wallet chain.Address
	payout payout.Payout
}

func newShop(t *testing.T, e *Engine, node *sim.Chain) shop {
	t.Helper()

	a, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	master, err := e.Transactions.MasterWallet(t.Context(), "simnet", a.Index)
	if err != nil {
		t.Fatal(err)
	}

	node.Fund(master.Address, "SIM", chain.Pow10(19))
	node.Mine(1)
	followAll(t, e)

	if _, err := e.Payouts.Balances(t.Context(), event.Owner{AccountID: a.ID}); err != nil {
		t.Fatal(err)
	}

	if err := e.Transactions.RefreshBalances(t.Context(), "simnet"); err != nil {
		t.Fatal(err)
	}

	p, err := e.Payouts.Create(t.Context(), payout.Params{
		Owner:       event.Owner{AccountID: a.ID},
		Network:     "simnet",
		Asset:       "SIM",
		Amount:      chain.Pow10(18),
		Destination: string(node.NewAddress()),
	})
	if err != nil {
		t.Fatal(err)
	}

	return shop{a, master.Address, p}
}

func (s shop) status(t *testing.T, e *Engine) payout.Status {
	t.Helper()

	p, err := e.Payouts.Get(t.Context(), s.payout.Owner, s.payout.ID)
	if err != nil {
		t.Fatal(err)
	}

	return p.Status
}

// A wallet whose signer hangs delays the payouts of the others, and Health names it. A signature that comes too late
// is dropped, and the payout is signed once the signer answers.
func TestWalletWhoseSignerHangsStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := sim.New(sim.Config{})
		signer := &stuckSigner{Signer: sim.NewSigner(1, nil), release: make(chan struct{})}
		e := newEngine(t, nil, Config{Store: memory.New(), Drivers: []chain.Driver{node}, Signer: signer})

		stuck, other := newShop(t, e, node), newShop(t, e, node)
		signer.account = stuck.Index

		steps := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
				if _, err := e.Step(t.Context()); err != nil {
					t.Error(err)
				}

				node.Mine(1)
			}
		}

		steps(5 * time.Minute)

		if a, b := stuck.status(t, e), other.status(t, e); a != payout.Pending || b != payout.Confirmed {
			t.Errorf("the payouts are %s and %s", a, b)
		}

		if n := signer.calls.Load(); n != 1 {
			t.Errorf("%d calls hang", n)
		}

		report, err := e.Health(t.Context())
		if err != nil || len(report.Wallets) != 1 || report.Wallets[0].Address != string(stuck.wallet) ||
			!strings.Contains(report.Wallets[0].Reason, "signer_timeout") {
			t.Errorf("the wallets are %+v: %v", report.Wallets, err)
		}

		close(signer.release)
		steps(5 * time.Minute)

		if status := stuck.status(t, e); status != payout.Confirmed {
			t.Errorf("the payout of the wallet is %s", status)
		}

		if n := signer.calls.Load(); n != 2 {
			t.Errorf("the signer was asked %d times", n)
		}

		if report, err = e.Health(t.Context()); err != nil || len(report.Wallets) > 0 {
			t.Errorf("the wallets are %+v: %v", report.Wallets, err)
		}
	})
}
