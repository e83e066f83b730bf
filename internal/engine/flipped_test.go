package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// flip is what somebody writes into rows between two reads of an operation. Functions that are nil change nothing.
type flip struct {
	account  func(*account.Account)
	key      func(*account.Key)
	invoice  func(*invoice.Invoice)
	address  func(*invoice.Address)
	deposit  func(*invoice.DepositAddress)
	payment  func(*invoice.Payment)
	payout   func(*payout.Payout)
	transfer func(*settlement.Settlement)
}

// flipped is a store whose rows are changed from the read of a number on, or up to it.
type flipped struct {
	store.Store
	flip  flip
	at    int // the first read that is flipped, or the first that is not; 0: none is flipped
	until bool
	reads int
}

// now counts a read and reports whether it finds flipped rows.
func (f *flipped) now() bool {
	f.reads++

	return f.at > 0 && (f.reads >= f.at) != f.until
}

func (f *flipped) Update(ctx context.Context, do func(context.Context, store.Tx) error) error {
	return f.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		return do(ctx, &flippedTx{tx, flippedReader{tx, f}})
	})
}

// flippedReader are the reads of rows that say whose money something is.
type flippedReader struct {
	store.Reader
	f *flipped
}

// flippedTx is a transaction with them.
type flippedTx struct {
	store.Tx
	read flippedReader
}

// change applies a change to copies of rows, where they are flipped.
func change[T any](f *flipped, by func(*T), rows ...T) []T {
	rows = slices.Clone(rows)
	if !f.now() || by == nil {
		return rows
	}

	for i := range rows {
		by(&rows[i])
	}

	return rows
}

func one[T any](f *flipped, by func(*T), row T, err error) (T, error) {
	return change(f, by, row)[0], err
}

func (r flippedReader) flippedInvoices(all []invoice.Invoice, err error) ([]invoice.Invoice, error) {
	for i := range all {
		all[i].Options = slices.Clone(all[i].Options)
	}

	return change(r.f, r.f.flip.invoice, all...), err
}

func (r flippedReader) flippedInvoice(inv invoice.Invoice, err error) (invoice.Invoice, error) {
	all, err := r.flippedInvoices([]invoice.Invoice{inv}, err)
	return all[0], err
}

func (r flippedReader) Account(ctx context.Context, id string) (account.Account, error) {
	a, err := r.Reader.Account(ctx, id)
	return one(r.f, r.f.flip.account, a, err)
}

func (r flippedReader) KeyByHash(ctx context.Context, hash [32]byte) (account.Key, account.Account, error) {
	k, a, err := r.Reader.KeyByHash(ctx, hash)
	if !r.f.now() {
		return k, a, err
	}

	if r.f.flip.key != nil {
		r.f.flip.key(&k)
	}

	if r.f.flip.account != nil {
		r.f.flip.account(&a)
	}

	return k, a, err
}

func (r flippedReader) InvoiceSettings(ctx context.Context, id string) (invoice.Settings, error) {
	a, err := r.Account(ctx, id)
	return store.InvoiceSettings(a), err
}

func (r flippedReader) SettlementSettings(ctx context.Context, id string) (settlement.Settings, error) {
	a, err := r.Account(ctx, id)
	return store.SettlementSettings(a), err
}

func (r flippedReader) PayoutSettings(ctx context.Context, id string) (payout.Settings, error) {
	a, err := r.Account(ctx, id)
	return store.PayoutSettings(a), err
}

func (r flippedReader) Invoice(ctx context.Context, owner event.Owner, id string) (invoice.Invoice, error) {
	inv, err := r.Reader.InvoiceByID(ctx, id) // whose it is may be flipped
	inv, err = r.flippedInvoice(inv, err)

	if err == nil && inv.Owner != owner {
		_, err = r.Reader.Invoice(ctx, event.Owner{}, id)
	}

	return inv, err
}

func (r flippedReader) InvoiceByID(ctx context.Context, id string) (invoice.Invoice, error) {
	return r.flippedInvoice(r.Reader.InvoiceByID(ctx, id))
}

func (r flippedReader) InvoicesByID(ctx context.Context, ids []string) ([]invoice.Invoice, error) {
	return r.flippedInvoices(r.Reader.InvoicesByID(ctx, ids))
}

func (r flippedReader) MatchAddresses(
	ctx context.Context,
	space chain.Space,
	addresses []chain.Address,
) ([]invoice.Address, error) {
	all, err := r.Reader.MatchAddresses(ctx, space, addresses)
	return change(r.f, r.f.flip.address, all...), err
}

func (r flippedReader) DepositAddress(
	ctx context.Context,
	owner event.Owner,
	id string,
) (invoice.DepositAddress, error) {
	d, err := r.Reader.DepositAddress(ctx, owner, id)
	return one(r.f, r.f.flip.deposit, d, err)
}

func (r flippedReader) PaymentsOfInvoices(ctx context.Context, ids []string) ([]invoice.Payment, error) {
	all, err := r.Reader.PaymentsOfInvoices(ctx, ids)
	return change(r.f, r.f.flip.payment, all...), err
}

func (r flippedReader) UnconfirmedPayments(
	ctx context.Context,
	network string,
	height uint64,
	limit int,
) ([]invoice.Payment, error) {
	all, err := r.Reader.UnconfirmedPayments(ctx, network, height, limit)
	return change(r.f, r.f.flip.payment, all...), err
}

func (r flippedReader) Payout(ctx context.Context, owner event.Owner, id string) (payout.Payout, error) {
	p, err := r.Reader.Payout(ctx, owner, id)
	return one(r.f, r.f.flip.payout, p, err)
}

func (r flippedReader) PayoutByID(ctx context.Context, id string) (payout.Payout, error) {
	p, err := r.Reader.PayoutByID(ctx, id)
	return one(r.f, r.f.flip.payout, p, err)
}

func (r flippedReader) SettlementsByID(ctx context.Context, ids []string) ([]settlement.Settlement, error) {
	all, err := r.Reader.SettlementsByID(ctx, ids)
	return change(r.f, r.f.flip.transfer, all...), err
}

// reader returns the reads of the store outside of transactions.
func (f *flipped) reader() flippedReader { return flippedReader{f.Store, f} }

func (f *flipped) Account(ctx context.Context, id string) (account.Account, error) {
	return f.reader().Account(ctx, id)
}

func (f *flipped) KeyByHash(ctx context.Context, hash [32]byte) (account.Key, account.Account, error) {
	return f.reader().KeyByHash(ctx, hash)
}

func (f *flipped) InvoiceSettings(ctx context.Context, id string) (invoice.Settings, error) {
	return f.reader().InvoiceSettings(ctx, id)
}

func (f *flipped) SettlementSettings(ctx context.Context, id string) (settlement.Settings, error) {
	return f.reader().SettlementSettings(ctx, id)
}

func (f *flipped) PayoutSettings(ctx context.Context, id string) (payout.Settings, error) {
	return f.reader().PayoutSettings(ctx, id)
}

func (f *flipped) Invoice(ctx context.Context, owner event.Owner, id string) (invoice.Invoice, error) {
	return f.reader().Invoice(ctx, owner, id)
}

func (f *flipped) InvoiceByID(ctx context.Context, id string) (invoice.Invoice, error) {
	return f.reader().InvoiceByID(ctx, id)
}

func (f *flipped) InvoicesByID(ctx context.Context, ids []string) ([]invoice.Invoice, error) {
	return f.reader().InvoicesByID(ctx, ids)
}

func (f *flipped) MatchAddresses(
	ctx context.Context,
	space chain.Space,
	addresses []chain.Address,
) ([]invoice.Address, error) {
	return f.reader().MatchAddresses(ctx, space, addresses)
}

func (f *flipped) DepositAddress(
	ctx context.Context,
	owner event.Owner,
	id string,
) (invoice.DepositAddress, error) {
	return f.reader().DepositAddress(ctx, owner, id)
}

func (f *flipped) PaymentsOfInvoices(ctx context.Context, ids []string) ([]invoice.Payment, error) {
	return f.reader().PaymentsOfInvoices(ctx, ids)
}

func (f *flipped) UnconfirmedPayments(
	ctx context.Context,
	network string,
	height uint64,
	limit int,
) ([]invoice.Payment, error) {
	return f.reader().UnconfirmedPayments(ctx, network, height, limit)
}

func (f *flipped) Payout(ctx context.Context, owner event.Owner, id string) (payout.Payout, error) {
	return f.reader().Payout(ctx, owner, id)
}

func (f *flipped) PayoutByID(ctx context.Context, id string) (payout.Payout, error) {
	return f.reader().PayoutByID(ctx, id)
}

func (f *flipped) SettlementsByID(ctx context.Context, ids []string) ([]settlement.Settlement, error) {
	return f.reader().SettlementsByID(ctx, ids)
}

func (t *flippedTx) Unwrap() store.Tx { return t.Tx }

func (t *flippedTx) Account(ctx context.Context, id string) (account.Account, error) {
	return t.read.Account(ctx, id)
}

func (t *flippedTx) InvoiceSettings(ctx context.Context, id string) (invoice.Settings, error) {
	return t.read.InvoiceSettings(ctx, id)
}

func (t *flippedTx) SettlementSettings(ctx context.Context, id string) (settlement.Settings, error) {
	return t.read.SettlementSettings(ctx, id)
}

func (t *flippedTx) PayoutSettings(ctx context.Context, id string) (payout.Settings, error) {
	return t.read.PayoutSettings(ctx, id)
}

func (t *flippedTx) Invoice(ctx context.Context, owner event.Owner, id string) (invoice.Invoice, error) {
	return t.read.Invoice(ctx, owner, id)
}

func (t *flippedTx) InvoiceByID(ctx context.Context, id string) (invoice.Invoice, error) {
	return t.read.InvoiceByID(ctx, id)
}

func (t *flippedTx) InvoicesByID(ctx context.Context, ids []string) ([]invoice.Invoice, error) {
	return t.read.InvoicesByID(ctx, ids)
}

func (t *flippedTx) MatchAddresses(
	ctx context.Context,
	space chain.Space,
	addresses []chain.Address,
) ([]invoice.Address, error) {
	return t.read.MatchAddresses(ctx, space, addresses)
}

func (t *flippedTx) DepositAddress(
	ctx context.Context,
	owner event.Owner,
	id string,
) (invoice.DepositAddress, error) {
	return t.read.DepositAddress(ctx, owner, id)
}

func (t *flippedTx) PaymentsOfInvoices(ctx context.Context, ids []string) ([]invoice.Payment, error) {
	return t.read.PaymentsOfInvoices(ctx, ids)
}

func (t *flippedTx) UnconfirmedPayments(
	ctx context.Context,
	network string,
	height uint64,
	limit int,
) ([]invoice.Payment, error) {
	return t.read.UnconfirmedPayments(ctx, network, height, limit)
}

func (t *flippedTx) Payout(ctx context.Context, owner event.Owner, id string) (payout.Payout, error) {
	return t.read.Payout(ctx, owner, id)
}

func (t *flippedTx) PayoutByID(ctx context.Context, id string) (payout.Payout, error) {
	return t.read.PayoutByID(ctx, id)
}

func (t *flippedTx) SettlementsByID(ctx context.Context, ids []string) ([]settlement.Settlement, error) {
	return t.read.SettlementsByID(ctx, ids)
}

// robbery is a service with two merchants. The second writes the database.
type robbery struct {
	*Engine
	t        *testing.T
	node     *sim.Chain
	rows     *flipped
	honest   store.Store // the rows as they are
	owner    event.Owner
	rival    event.Owner
	invoice  invoice.Invoice // of the owner, with an option selected
	deposit  invoice.DepositAddress
	foreign  invoice.DepositAddress // of the rival
	key      string                 // secret of a key of the owner
	approver payout.Approver
	payout   payout.Payout // of the owner; waits for approval
	err      error         // of the operation
	later    time.Duration // that the clock was put ahead
}

const hostile = "0x00000000000000000000000000000000000000aa"

func newRobbery(t *testing.T) *robbery {
	t.Helper()

	honest := memory.New()
	rows := &flipped{Store: honest}
	node := sim.New(sim.Config{})

	r := &robbery{t: t, node: node, rows: rows, honest: honest}
	r.Engine = newEngine(t, map[string]string{"ETH/USD": "100"}, Config{
		Store:   rows,
		Drivers: []chain.Driver{node},
		Now:     func() time.Time { return time.Now().Add(r.later) },
	})

	above := decimal.NewFromInt(10)
	r.owner = r.merchant(account.Settings{Name: "Corner Shop", ApproveAboveUSD: &above})
	r.rival = r.merchant(account.Settings{Name: "Rival"})

	var err error

	r.invoice = r.create(r.owner)
	r.deposit, err = r.Invoices.CreateDeposit(
		t.Context(),
		invoice.DepositParams{Owner: r.owner, Network: "simnet"},
	)
	r.must(err)

	r.foreign, err = r.Invoices.CreateDeposit(
		t.Context(),
		invoice.DepositParams{Owner: r.rival, Network: "simnet"},
	)
	r.must(err)

	_, secret, err := r.Accounts.CreateKey(t.Context(), account.KeyParams{
		AccountID: r.owner.AccountID,
		Scopes:    []account.Scope{account.InvoicesRead},
	})
	r.must(err)

	r.key = secret

	a, err := honest.Account(t.Context(), r.owner.AccountID)
	r.must(err)

	master, err := r.Transactions.MasterWallet(t.Context(), "simnet", a.Index)
	r.must(err)

	node.Fund(master.Address, "SIM", chain.Pow10(20))
	node.Mine(1)
	followAll(t, r.Engine)

	r.approver = payout.Approver{Requester: payout.Requester{ID: "second key"}}
	r.payout, err = r.Payouts.Create(t.Context(), r.params())
	r.must(err)

	return r
}

func (r *robbery) must(err error) {
	r.t.Helper()

	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *robbery) merchant(s account.Settings) event.Owner {
	a, err := r.Accounts.CreateAccount(r.t.Context(), s)
	r.must(err)

	return event.Owner{AccountID: a.ID}
}

func (r *robbery) create(owner event.Owner) invoice.Invoice {
	inv, err := r.Invoices.Create(r.t.Context(), invoice.CreateParams{
		Owner:   owner,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	r.must(err)

	return inv
}

// params are those of a payout of 100 USD, which needs an approval.
func (r *robbery) params() payout.Params {
	return payout.Params{
		Owner:       r.owner,
		Network:     "simnet",
		Asset:       "SIM",
		Amount:      chain.Pow10(18),
		Destination: string(r.foreign.Address),
		RequestedBy: payout.Requester{ID: "first key"},
	}
}

// shows fails where an invoice that is shown is not the one that was made.
func (r *robbery) shows(inv invoice.Invoice, err error) {
	r.t.Helper()

	want := r.invoice.Options[0]
	if r.err = err; err != nil {
		return
	}

	if got := inv.Options[0]; inv.Owner != r.owner || got.Network != want.Network ||
		got.Address != want.Address ||
		got.TokenAccount != want.TokenAccount ||
		got.Contract != want.Contract ||
		got.Key != want.Key {
		r.t.Errorf("an invoice of %s shows %s on %s", inv.Owner.AccountID, got.Address, got.Network)
	}
}

// robbed fails where the rival has something of what the owner was paid.
func (r *robbery) robbed() {
	r.t.Helper()

	all, err := r.honest.Payments(r.t.Context(), invoice.PaymentFilter{Owner: r.rival, Limit: 10})
	r.must(err)

	for _, p := range all {
		r.t.Errorf("payment %s to %s is %s of the rival", p.ID, p.Address, p.Status)
	}

	a, err := r.honest.Account(r.t.Context(), r.rival.AccountID)
	r.must(err)

	master, err := r.Transactions.MasterWallet(r.t.Context(), "simnet", a.Index)
	r.must(err)

	if got := r.node.Balance(master.Address, "SIM"); !got.IsZero() {
		r.t.Errorf("the rival's wallet has %s", got)
	}
}

// TestFlippedRowsMoveNothing: who changes rows between any two reads of an operation, and changes them back, has no
// payer shown another address, nobody credited or paid what is not his, and no payout made without its approval.
func TestFlippedRowsMoveNothing(t *testing.T) {
	toRival := func(r *robbery) flip {
		return flip{
			invoice: func(inv *invoice.Invoice) { inv.Owner = r.rival },
			address: func(a *invoice.Address) { a.Owner = r.rival },
			deposit: func(d *invoice.DepositAddress) { d.Owner = r.rival },
			payment: func(p *invoice.Payment) { p.Owner = r.rival },
		}
	}
	flips := map[string]func(r *robbery) flip{
		"the owner of all rows": toRival,
		"the owner of the invoice": func(r *robbery) flip {
			return flip{invoice: toRival(r).invoice, deposit: toRival(r).deposit, payment: toRival(r).payment}
		},
		"the owner of the address": func(r *robbery) flip { return flip{address: toRival(r).address} },
		"the address": func(r *robbery) flip {
			return flip{
				invoice: func(inv *invoice.Invoice) { inv.Options[0].Address = r.foreign.Address },
				deposit: func(d *invoice.DepositAddress) { d.Address = r.foreign.Address },
			}
		},
		"the address and its network": func(*robbery) flip {
			return flip{
				invoice: func(inv *invoice.Invoice) {
					inv.Options[0].Address, inv.Options[0].Network = hostile, "Sim Network"
				},
				deposit: func(d *invoice.DepositAddress) { d.Address, d.Network = hostile, "Sim Network" },
			}
		},
		"the network": func(*robbery) flip {
			return flip{
				invoice: func(inv *invoice.Invoice) { inv.Options[0].Network = "othernet" },
				deposit: func(d *invoice.DepositAddress) { d.Network = "othernet" },
			}
		},
		"the contract": func(*robbery) flip {
			return flip{invoice: func(inv *invoice.Invoice) { inv.Options[0].Contract = hostile }}
		},
		"the key": func(r *robbery) flip {
			return flip{
				invoice: func(inv *invoice.Invoice) { inv.Options[0].Key = r.foreign.Key },
				deposit: func(d *invoice.DepositAddress) { d.Key = r.foreign.Key },
			}
		},
		"the settings": func(r *robbery) flip {
			return flip{account: func(a *account.Account) {
				a.Settings.ApproveAboveUSD, a.Settings.PayoutsPerHour = nil, 1_000_000
			}}
		},
		"the account's index": func(*robbery) flip {
			return flip{account: func(a *account.Account) { a.Index = 1 - a.Index }}
		},
		"the payout": func(*robbery) flip {
			return flip{payout: func(p *payout.Payout) { p.Destination = hostile }}
		},
		"the approval": func(*robbery) flip {
			return flip{payout: func(p *payout.Payout) { p.Approval = payout.Approval{} }}
		},
		"the API key": func(r *robbery) flip {
			return flip{
				key:     func(k *account.Key) { k.Owner = r.rival },
				account: func(a *account.Account) { a.ID = r.rival.AccountID },
			}
		},
		"the API key's scopes": func(*robbery) flip {
			return flip{key: func(k *account.Key) { k.Scopes = account.AllScopes() }}
		},
		"the settlement": func(r *robbery) flip {
			return flip{transfer: func(s *settlement.Settlement) { s.Owner = r.rival }}
		},
	}

	operations := map[string]struct {
		before func(r *robbery)
		do     func(r *robbery)
		others bool // the object is another merchant's
	}{
		"showing an invoice to its merchant": {do: func(r *robbery) {
			r.shows(r.Invoices.Get(r.t.Context(), r.owner, r.invoice.ID))
		}},
		"showing an invoice to another": {do: func(r *robbery) {
			r.shows(r.Invoices.Get(r.t.Context(), r.rival, r.invoice.ID))
		}, others: true},
		"showing an invoice to its payer": {do: func(r *robbery) {
			r.shows(r.Invoices.GetByID(r.t.Context(), r.invoice.ID))
		}},
		"watching an invoice": {do: func(r *robbery) {
			for inv, err := range r.Watch(r.t.Context(), r.invoice.ID) {
				r.shows(inv, err)
				break
			}
		}},
		"showing a deposit address": {do: func(r *robbery) {
			d, err := r.Invoices.GetDeposit(r.t.Context(), r.owner, r.deposit.ID)
			if r.err = err; err == nil &&
				(d.Owner != r.owner || d.Address != r.deposit.Address || d.Network != r.deposit.Network) {
				r.t.Errorf("deposit address %s of %s on %s", d.Address, d.Owner.AccountID, d.Network)
			}
		}},
		"selecting": {do: func(r *robbery) {
			r.shows(r.Invoices.Select(r.t.Context(), &r.owner, r.invoice.ID, r.invoice.Options[0].ID))
		}},
		"crediting": {before: func(r *robbery) {
			r.node.Pay(r.invoice.Options[0].Address, "SIM", chain.Pow10(18))
			r.node.Pay(r.deposit.Address, "SIM", chain.Pow10(18))
			r.node.Mine(10)
		}, do: func(r *robbery) { r.err = r.follow() }},
		"confirming": {before: func(r *robbery) {
			r.node.Pay(r.invoice.Options[0].Address, "SIM", chain.Pow10(18))
			r.node.Mine(1)
			r.must(r.follow())
			r.node.Mine(10)
		}, do: func(r *robbery) { r.err = r.follow() }},
		"releasing": {before: func(r *robbery) {
			r.node.Pay(r.invoice.Options[0].Address, "SIM", chain.Pow10(18))
			r.node.Mine(10)
			r.must(r.follow())
		}, do: func(r *robbery) {
			for range 3 {
				_, _ = r.Sweeper.Step(r.t.Context(), "simnet")
				_, _ = r.Transactions.Step(r.t.Context(), "simnet")
				r.node.Mine(2)
			}
		}},
		"creating a payout": {do: func(r *robbery) {
			p, err := r.Payouts.Create(r.t.Context(), r.params())
			if r.err = err; err == nil && (!p.Approval.Required || p.Owner != r.owner) {
				r.t.Errorf("a payout of %s with approval %+v", p.Owner.AccountID, p.Approval)
			}
		}},
		"approving a payout": {do: func(r *robbery) {
			p, err := r.Payouts.Approve(r.t.Context(), r.owner, r.payout.ID, r.approver)
			if r.err = err; err == nil && p.Destination != r.payout.Destination {
				r.t.Errorf("what pays %s was approved", p.Destination)
			}
		}},
		"creating a refund": {before: func(r *robbery) {
			r.node.Pay(r.invoice.Options[0].Address, "SIM", chain.Pow10(18))
			r.node.Mine(10)
			r.must(r.follow())
		}, do: func(r *robbery) {
			refund, err := r.Payouts.CreateRefund(r.t.Context(), payout.RefundParams{
				Owner:       r.owner,
				InvoiceID:   r.invoice.ID,
				Destination: string(r.foreign.Address),
				RequestedBy: payout.Requester{ID: "first key"},
			})
			if r.err = err; err != nil {
				return
			}

			p, err := r.honest.PayoutByID(r.t.Context(), refund.PayoutID)
			if err != nil || !p.Approval.Required {
				r.t.Errorf("a refund with approval %+v: %v", p.Approval, err)
			}
		}},
		"authenticating": {do: func(r *robbery) {
			k, a, err := r.Accounts.Authenticate(r.t.Context(), r.key, netip.Addr{})
			if r.err = err; err == nil &&
				(k.Owner != r.owner || a.ID != r.owner.AccountID || len(k.Scopes) != 1 || a.Index != 0) {
				r.t.Errorf("a key of %s with %v", k.Owner.AccountID, k.Scopes)
			}
		}},
	}

	for name, op := range operations {
		t.Run(name, func(t *testing.T) {
			most := 0

			t.Run("as they are", func(t *testing.T) {
				r := newRobbery(t)
				if op.before != nil {
					op.before(r)
				}

				op.do(r)

				if errors.Is(r.err, fault.NotFound) && op.others {
					return
				}

				if inv, err := r.honest.InvoiceByID(t.Context(), r.invoice.ID); r.err != nil || err != nil ||
					inv.Status != invoice.Paid && op.before != nil {
					t.Errorf("the invoice is %s: %v", inv.Status, r.err)
				}
			})

			for what, made := range flips {
				for _, until := range []bool{false, true} {
					for at := 1; ; at++ {
						passed := t.Run(fmt.Sprintf("%s/%t/%d", what, until, at), func(t *testing.T) {
							r := newRobbery(t)
							if op.before != nil {
								op.before(r)
							}

							r.rows.flip, r.rows.at, r.rows.until, r.rows.reads = made(r), at, until, 0
							op.do(r)
							r.rows.at = 0
							most = max(most, r.rows.reads)
							r.robbed()
						})
						if !passed || at >= most || at >= maxFlips {
							break
						}
					}
				}
			}
		})
	}
}

// maxFlips bounds the reads of one operation before which rows are flipped.
const maxFlips = 40

// follow reads the network up to its tip, and tries again what was refused.
func (r *robbery) follow() error {
	for _, f := range r.followers {
		for range 20 {
			did, err := f.Step(r.t.Context())
			if err != nil {
				return err
			}

			if !did {
				break
			}
		}
	}

	return nil
}

// TestFlippedRowStopsNobodyElse: a payment whose rows do not agree waits where Health names it, others are credited,
// and it is credited once the row is restored.
func TestFlippedRowStopsNobodyElse(t *testing.T) {
	for name, made := range map[string]func(r *robbery) func(a *invoice.Address){
		"another owner": func(r *robbery) func(a *invoice.Address) {
			return func(a *invoice.Address) { a.Owner = r.rival }
		},
		"a tag of a key that nobody has": func(*robbery) func(a *invoice.Address) {
			return func(a *invoice.Address) { a.MAC = append([]byte{1, 2, 3, 4}, a.MAC[4:]...) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRobbery(t)
			other, damage := r.create(r.owner), made(r)

			r.node.Pay(r.invoice.Options[0].Address, "SIM", chain.Pow10(18))
			r.node.Pay(other.Options[0].Address, "SIM", chain.Pow10(18))
			r.node.Mine(10)

			r.rows.flip, r.rows.at = flip{address: func(a *invoice.Address) {
				if a.InvoiceID == r.invoice.ID {
					damage(a)
				}
			}}, 1
			followAll(t, r.Engine)

			report, err := r.Health(t.Context())
			if waiting := report.Networks[0].Follower.Unread; err != nil || len(waiting) != 1 ||
				waiting[0].Address != string(r.invoice.Options[0].Address) {
				t.Errorf("Health names %+v: %v", waiting, err)
			}

			r.rows.at, r.later = 0, 2*time.Minute
			if did, err := r.retry(t.Context(), "simnet"); !did || err != nil {
				t.Errorf("the payment is not tried again: %v", err)
			}

			for _, id := range []string{other.ID, r.invoice.ID} {
				inv, err := r.Invoices.GetByID(t.Context(), id)
				if err != nil || inv.Status != invoice.Paid {
					t.Errorf("invoice %s is %s: %v", id, inv.Status, err)
				}
			}

			r.robbed()
		})
	}
}
