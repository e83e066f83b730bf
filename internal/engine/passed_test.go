package engine

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// passing is an engine over a network whose only node lacks what was paid while the service was down.
type passing struct {
	t      *testing.T
	at     time.Time
	chain  *sim.Chain
	engine *Engine
	log    bytes.Buffer
	inv    invoice.Invoice
	// paid is the hash of what was paid; from and to are the blocks that the node lacks.
	paid     string
	from, to uint64
}

func newPassing(t *testing.T) *passing {
	t.Helper()

	p := &passing{t: t, at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p.chain = sim.New(sim.Config{Clock: func() time.Time { return p.at }})
	p.engine = newEngine(t, map[string]string{"SIM/USD": "1"}, Config{
		Store:   memory.New(),
		Drivers: []chain.Driver{p.chain},
		Now:     func() time.Time { return p.at },
		Log:     slog.New(slog.NewTextHandler(&p.log, nil)),
	})

	made, err := p.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	p.must(err)

	p.inv, err = p.engine.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner:   event.Owner{AccountID: made.ID},
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	p.must(err)
	p.chain.Mine(3)
	p.work()

	read, _, err := p.engine.config.Store.Cursor(t.Context(), "simnet")
	p.must(err)

	p.chain.Mine(2)
	p.paid = p.chain.Pay(p.inv.Options[0].Address, "SIM", p.inv.Options[0].AmountDue)
	p.chain.Mine(10)

	p.from, p.to = read.At.Height+1, read.At.Height+5
	p.chain.Prune(p.to + 1)
	p.work()

	if n := p.health(); !strings.Contains(n.Stopped, "no longer has block") || n.Ready() {
		t.Fatalf("the network says that it is stopped for %q", n.Stopped)
	}

	return p
}

func (p *passing) must(err error) {
	p.t.Helper()

	if err != nil {
		p.t.Fatal(err)
	}
}

// work does what is due, for five minutes, with a block every 15 seconds.
func (p *passing) work() {
	for range 20 {
		p.at = p.at.Add(15 * time.Second)
		p.chain.Mine(1)

		for range 6 {
			_, _ = p.engine.Step(p.t.Context())
		}
	}
}

func (p *passing) health() health.Network {
	p.t.Helper()

	report, err := p.engine.Health(p.t.Context())
	p.must(err)

	return report.Networks[0]
}

// unread returns the blocks that Health and the audit say were not read.
func (p *passing) unread() (named []string, audited []audit.Blocks) {
	p.t.Helper()

	for _, u := range p.health().Follower.Unread {
		named = append(named, u.Error)
	}

	report, err := p.engine.Audit(p.t.Context())
	p.must(err)

	if found := report.Differences(); len(found) > 0 {
		p.t.Errorf("the audit finds %+v", found)
	}

	return named, report.Networks[0].Unread
}

// payments returns the payments of the invoice.
func (p *passing) payments() []invoice.Payment {
	p.t.Helper()

	inv, err := p.engine.Invoices.Get(p.t.Context(), p.inv.Owner, p.inv.ID)
	p.must(err)

	if p.inv = inv; inv.Status != invoice.Paid {
		p.t.Errorf("the invoice is %s", inv.Status)
	}

	all, err := p.engine.config.Store.PaymentsOfInvoices(p.t.Context(), []string{inv.ID})
	p.must(err)

	return all
}

// Resumed above blocks that no node has, a network is read on, what was paid in them is found by its balance, and the
// log, Health and the audit name them. Once a node has them the payment gets its transaction, and counts once.
func TestResumeAboveBlocksThatNoNodeHas(t *testing.T) {
	p := newPassing(t)
	p.must(p.engine.Resume(t.Context(), "simnet"))
	p.work()

	passed := fmt.Sprintf("blocks %d to %d were not read", p.from, p.to)

	named, audited := p.unread()
	if len(named) != 1 || !strings.Contains(named[0], passed) || p.health().NeedsPerson() ||
		!p.health().Ready() {
		t.Errorf("Health names %q: %+v", named, p.health())
	}

	if len(audited) != 1 || audited[0] != (audit.Blocks{From: p.from, To: p.to}) {
		t.Errorf("the audit names %+v", audited)
	}

	if logged := p.log.String(); !strings.Contains(
		logged,
		fmt.Sprintf("from_height=%d to_height=%d", p.from, p.to),
	) {
		t.Errorf("the log does not name blocks %d to %d", p.from, p.to)
	}

	all := p.payments()
	if len(all) != 1 || all[0].TxHash != "" || all[0].DetectedBy != invoice.ByBalance {
		t.Errorf("the payments are %+v", all)
	}

	p.chain.Prune(0)
	p.work()

	if named, audited = p.unread(); len(named)+len(audited) > 0 {
		t.Errorf("once a node has the blocks Health names %q, the audit %+v", named, audited)
	}

	if all = p.payments(); len(all) != 1 || all[0].TxHash != p.paid {
		t.Errorf("then the payments are %+v", all)
	}
}

// A network that is resumed once a node has the blocks again is read where it was.
func TestResumeOfANodeThatHasItsBlocksAgain(t *testing.T) {
	p := newPassing(t)
	p.chain.Prune(0)
	p.must(p.engine.Resume(t.Context(), "simnet"))
	p.work()

	if named, audited := p.unread(); len(named)+len(audited) > 0 {
		t.Errorf("Health names %q, the audit %+v", named, audited)
	}

	if all := p.payments(); len(all) != 1 || all[0].TxHash != p.paid {
		t.Errorf("the payments are %+v", all)
	}
}
