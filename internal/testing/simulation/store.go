package simulation

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// storeFault is what happens to an update of the store.
type storeFault int

const (
	noStoreFault     storeFault = iota
	failsBefore                 // the database does not answer; nothing is stored
	failsAfter                  // it commits and its answer is lost
	failsToSerialize            // the first try ends in a serialization failure and is run again
)

// commit is what one update stored: the records as it left them, each once.
type commit struct {
	invoices    map[string]invoice.Invoice
	payments    map[string]invoice.Payment
	payouts     map[string]payout.Payout
	refunds     map[string]payout.Refund
	settlements map[string]settlement.Settlement
	// sweeps and transactions are noted for the shadow.
	sweeps       map[string]settlement.Sweep
	transactions map[string]wallet.Transaction
	addresses    []invoice.Address
	balances     []wallet.Balance
	wallets      []wallet.Wallet
	cursors      []scan.Cursor
	events       []event.Event
}

// note keeps a record under its id; most commits store few kinds.
func note[T any](in *map[string]T, id string, record T) {
	if *in == nil {
		*in = map[string]T{}
	}

	(*in)[id] = record
}

// connection is one process's connection to the store. Its updates fail as the plan has it, the process may
// be killed at each, and the oracle is notified of what they stored.
type connection struct {
	store.Store
	process *process
}

// Update runs f in one transaction.
func (c connection) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	w := c.process.harness

	return c.process.crash.Do("update", func() error {
		w.clock.advance(c.process.storeDelay)

		problem := c.process.nextStoreFault()
		if problem == failsBefore {
			return storeDown()
		}

		var stored *commit

		err := c.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			stored = &commit{}
			if err := f(ctx, recorder{tx, stored}); err != nil {
				return err
			}

			if problem == failsToSerialize {
				problem = noStoreFault

				return fault.New(
					fault.Conflict,
					"serialization_failure",
					"the transactions cannot be serialized",
				)
			}

			return nil
		})
		if err != nil {
			return err
		}

		w.oracle.committed(c.process, stored)

		if problem == failsAfter {
			return storeDown()
		}

		return nil
	})
}

func storeDown() error {
	return fault.New(fault.Unavailable, "store_unavailable", "the simulated database does not answer")
}

// recorder is a transaction that notes what is put.
type recorder struct {
	store.Tx
	stored *commit
}

func (r recorder) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	err := r.Tx.PutInvoice(ctx, inv)
	if err == nil {
		note(&r.stored.invoices, inv.ID, *inv)
	}

	return err
}

func (r recorder) PutAddress(ctx context.Context, a invoice.Address) error {
	err := r.Tx.PutAddress(ctx, a)
	if err == nil {
		r.stored.addresses = append(r.stored.addresses, a)
	}

	return err
}

func (r recorder) PutPayments(ctx context.Context, payments ...*invoice.Payment) error {
	err := r.Tx.PutPayments(ctx, payments...)
	if err == nil {
		for _, p := range payments {
			note(&r.stored.payments, p.ID, *p)
		}
	}

	return err
}

func (r recorder) PutPayout(ctx context.Context, p *payout.Payout) error {
	err := r.Tx.PutPayout(ctx, p)
	if err == nil {
		note(&r.stored.payouts, p.ID, *p)
	}

	return err
}

func (r recorder) PutRefund(ctx context.Context, refund *payout.Refund) error {
	err := r.Tx.PutRefund(ctx, refund)
	if err == nil {
		note(&r.stored.refunds, refund.ID, *refund)
	}

	return err
}

func (r recorder) PutSettlements(ctx context.Context, settlements ...*settlement.Settlement) error {
	err := r.Tx.PutSettlements(ctx, settlements...)
	if err == nil {
		for _, s := range settlements {
			note(&r.stored.settlements, s.ID, *s)
		}
	}

	return err
}

func (r recorder) PutSweep(ctx context.Context, sweep *settlement.Sweep) error {
	err := r.Tx.PutSweep(ctx, sweep)
	if err == nil && shadowing {
		note(&r.stored.sweeps, sweep.ID, *sweep)
	}

	return err
}

func (r recorder) PutTransaction(ctx context.Context, t *wallet.Transaction) error {
	err := r.Tx.PutTransaction(ctx, t)
	if err == nil && shadowing {
		note(&r.stored.transactions, t.ID, *t)
	}

	return err
}

func (r recorder) PutBalance(ctx context.Context, b *wallet.Balance) error {
	err := r.Tx.PutBalance(ctx, b)
	if err == nil {
		r.stored.balances = append(r.stored.balances, *b)
	}

	return err
}

func (r recorder) PutWallet(ctx context.Context, w *wallet.Wallet) error {
	err := r.Tx.PutWallet(ctx, w)
	if err == nil {
		r.stored.wallets = append(r.stored.wallets, *w)
	}

	return err
}

func (r recorder) PutCursor(ctx context.Context, c *scan.Cursor) error {
	err := r.Tx.PutCursor(ctx, c)
	if err == nil {
		r.stored.cursors = append(r.stored.cursors, *c)
	}

	return err
}

func (r recorder) PutEvents(ctx context.Context, events ...event.Event) error {
	err := r.Tx.PutEvents(ctx, events...)
	if err == nil {
		r.stored.events = append(r.stored.events, events...)
	}

	return err
}
