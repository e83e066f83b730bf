package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// straying is a simulated network with a stray at the master wallet, whose recovery pays the master wallet.
type straying struct {
	*sim.Chain
	stray chain.Stray
	err   error // of Strays
}

func (s *straying) Strays(_ context.Context, addresses []chain.Address) (strays []chain.Stray, err error) {
	for _, a := range addresses {
		if a == s.stray.Address {
			strays = append(strays, s.stray)
		}
	}

	return strays, s.err
}

func (s *straying) PlanRecovery(_ context.Context, r chain.RecoveryRequest) (chain.Order, error) {
	native, _ := s.Network().Native()

	return chain.Order{
		From:     r.Owner,
		MaxFee:   chain.Pow10(15),
		Recovers: &r.Stray,
		Outputs:  []chain.Output{{To: r.Master.Address, AssetID: native.ID, Amount: chain.Pow10(15)}},
	}, nil
}

// refusing signs no recovery.
type refusing struct{ chain.Signer }

func (r refusing) Sign(ctx context.Context, request chain.SignRequest) ([][]byte, error) {
	if request.Intent.Kind == string(wallet.Recovery) {
		return nil, chain.Refuse("no_recoveries")
	}

	return r.Signer.Sign(ctx, request)
}

// A recovery that the signer refuses is in the audit with its failure, and leaves no reservation.
func TestARefusedRecoveryLeavesNothing(t *testing.T) {
	d := &straying{Chain: sim.New(sim.Config{})}
	cfg := config(t, d.Chain)
	cfg.Drivers, cfg.Signer = []payments.ChainDriver{d}, refusing{cfg.Signer}

	engine, err := payments.New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	a, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	master, err := internal.Of(engine).Transactions.MasterWallet(t.Context(), "simnet", a.Index)
	if err != nil {
		t.Fatal(err)
	}

	d.stray = chain.Stray{Address: master.Address, Account: d.NewAddress(), Amount: chain.Units(7)}
	d.Fund(master.Address, "SIM", chain.Pow10(18))
	d.Mine(10)

	work := func() audit.Network {
		t.Helper()

		for range 100 {
			if did, err := engine.Step(t.Context()); err != nil {
				t.Fatal(err)
			} else if !did {
				break
			}
		}

		report, err := engine.Audit(t.Context())
		if err != nil || !report.Clean() {
			t.Errorf("the audit finds %+v, %v", report.Differences(), err)
		}

		return report.Networks[0]
	}

	if n := work(); len(n.Strays) != 1 || n.Strays[0].Stray != d.stray ||
		n.Strays[0].Owner.AccountID != a.ID {
		t.Errorf("listed is %+v", n.Strays)
	}

	queued, err := engine.Recover(t.Context(), "simnet", string(master.Address), string(d.stray.Account))
	if err != nil || queued.State != wallet.Queued || queued.Stray.Account != d.stray.Account {
		t.Fatalf("%+v, %v", queued, err)
	}

	n := work()
	if len(n.Recoveries) != 1 || n.Recoveries[0].ID != queued.ID ||
		n.Recoveries[0].Failure != wallet.FailSignerRefused+"no_recoveries" {
		t.Errorf("the recoveries are %+v", n.Recoveries)
	}

	// Where no node lists strays the audit says so.
	d.err = fault.New(fault.Unsupported, "recovery_unsupported", "not here")

	if n := work(); n.StraysUnchecked == "" || len(n.Strays) > 0 {
		t.Errorf("not checked is %q, listed %+v", n.StraysUnchecked, n.Strays)
	}
}

// What is no stray, no address of ours, or on a network without strays is refused by its reason.
func TestRecoverRefusesByReason(t *testing.T) {
	d := &straying{Chain: sim.New(sim.Config{})}
	cfg := config(t, d.Chain)
	foreign := d.NewAddress()
	d.stray = chain.Stray{Address: foreign, Account: d.NewAddress()}

	for name, c := range map[string]struct {
		driver           payments.ChainDriver
		address, account chain.Address
		kind             error
		code             string
	}{
		"no stray":              {d, foreign, foreign, fault.NotFound, "stray_unknown"},
		"no address of ours":    {d, foreign, d.stray.Account, fault.NotFound, "address_unknown"},
		"no address":            {d, "here", d.stray.Account, fault.Invalid, ""},
		"a network without any": {d.Chain, foreign, d.stray.Account, fault.Unsupported, "recovery_unsupported"},
	} {
		cfg.Drivers = []payments.ChainDriver{c.driver}

		engine, err := payments.New(cfg)
		if err != nil {
			t.Fatal(err)
		}

		got, err := engine.Recover(t.Context(), "simnet", string(c.address), string(c.account))
		if !errors.Is(err, c.kind) || c.code != "" && fault.Code(err) != c.code {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
