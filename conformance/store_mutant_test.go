package conformance_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// TestStoreOfMemory is the suite over the store that the mutants are made of.
func TestStoreOfMemory(t *testing.T) {
	conformance.TestStore(t, func(*testing.T) store.Store {
		st := memory.New()
		if m, ok := allStoreMutants()[os.Getenv(mutantVariable)]; ok {
			st = m.change(st)
		}

		return st
	})
}

type storeMutant struct {
	fails  string
	change func(store.Store) store.Store
}

type closure = func(ctx context.Context, tx store.Tx) error

// faultyStore is a store with its updates, or the transactions in them, replaced.
type faultyStore struct {
	store.Store
	update func(ctx context.Context, f closure) error
}

func (s faultyStore) Update(ctx context.Context, f closure) error { return s.update(ctx, f) }

// mutateUpdate replaces how a store runs a closure.
func mutateUpdate(
	update func(st store.Store, ctx context.Context, f closure) error,
) func(store.Store) store.Store {
	return func(st store.Store) store.Store {
		return faultyStore{st, func(ctx context.Context, f closure) error { return update(st, ctx, f) }}
	}
}

// mutateTx replaces the transactions that closures are given.
func mutateTx(wrap func(st store.Store, tx store.Tx) store.Tx) func(store.Store) store.Store {
	return mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
		return st.Update(ctx, func(ctx context.Context, tx store.Tx) error { return f(ctx, wrap(st, tx)) })
	})
}

// faultyTx is a transaction with calls of it replaced.
type faultyTx struct {
	store.Tx
	putInvoice  func(context.Context, *invoice.Invoice) error
	putPayments func(context.Context, ...*invoice.Payment) error
	claim       func(ctx context.Context, r idempotency.Record, stale time.Time, wait time.Duration) error
	deliveries  func(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error)
	leases      func(ctx context.Context, names []string) (map[string]lease.Lease, error)
	readLeases  func(ctx context.Context, names []string) (map[string]lease.Lease, error)
	replace     func(ctx context.Context, was, l lease.Lease) error
	numbers     func(ctx context.Context, counter string, n int, first int64) (int64, error)
	pruneKeys   func(ctx context.Context, before time.Time, limit int) (int, error)
	pruneEvents func(ctx context.Context, before time.Time, limit int) (int, error)
	endpoints   func(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error)
	payments    func(ctx context.Context, f invoice.PaymentFilter) ([]invoice.Payment, error)
}

func (tx *faultyTx) PutInvoice(ctx context.Context, i *invoice.Invoice) error {
	return tx.putInvoice(ctx, i)
}

func (tx *faultyTx) PutPayments(ctx context.Context, p ...*invoice.Payment) error {
	return tx.putPayments(ctx, p...)
}

func (tx *faultyTx) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	return tx.claim(ctx, r, stale, wait)
}

func (tx *faultyTx) ClaimDeliveries(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
	return tx.deliveries(ctx, c)
}

func (tx *faultyTx) Leases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	return tx.leases(ctx, names)
}

func (tx *faultyTx) ReadLeases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	return tx.readLeases(ctx, names)
}

func (tx *faultyTx) ReplaceLease(ctx context.Context, was, l lease.Lease) error {
	return tx.replace(ctx, was, l)
}

func (tx *faultyTx) ReserveNumbers(ctx context.Context, counter string, n int, first int64) (int64, error) {
	return tx.numbers(ctx, counter, n, first)
}

func (tx *faultyTx) PruneIdempotencyKeys(ctx context.Context, before time.Time, limit int) (int, error) {
	return tx.pruneKeys(ctx, before, limit)
}

func (tx *faultyTx) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	return tx.pruneEvents(ctx, before, limit)
}

func (tx *faultyTx) EndpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error) {
	return tx.endpoints(ctx, owner)
}

func (tx *faultyTx) Payments(ctx context.Context, f invoice.PaymentFilter) ([]invoice.Payment, error) {
	return tx.payments(ctx, f)
}

// mutateCall replaces calls of transactions.
func mutateCall(change func(st store.Store, tx *faultyTx)) func(store.Store) store.Store {
	return mutateTx(func(st store.Store, inner store.Tx) store.Tx {
		tx := &faultyTx{
			Tx:          inner,
			putInvoice:  inner.PutInvoice,
			putPayments: inner.PutPayments,
			claim:       inner.ClaimIdempotencyKey,
			deliveries:  inner.ClaimDeliveries,
			leases:      inner.Leases,
			readLeases:  inner.ReadLeases,
			replace:     inner.ReplaceLease,
			numbers:     inner.ReserveNumbers,
			pruneKeys:   inner.PruneIdempotencyKeys,
			pruneEvents: inner.PruneEvents,
			endpoints:   inner.EndpointsOf,
			payments:    inner.Payments,
		}
		change(st, tx)

		return tx
	})
}

// lists is a store whose lists of invoices are replaced.
type lists struct {
	store.Store
	invoice  func(ctx context.Context, owner event.Owner, id string) (invoice.Invoice, error)
	invoices func(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error)
}

func (l lists) Invoice(ctx context.Context, owner event.Owner, id string) (invoice.Invoice, error) {
	return l.invoice(ctx, owner, id)
}

func (l lists) Invoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	return l.invoices(ctx, f)
}

func mutateLists(change func(st store.Store, l *lists)) func(store.Store) store.Store {
	return func(st store.Store) store.Store {
		l := &lists{Store: st, invoice: st.Invoice, invoices: st.Invoices}
		change(st, l)

		return l
	}
}

var errOnlyOnce = errors.New("the closure was run again")

var storeMutants = map[string]storeMutant{
	"an error commits": {
		"Transaction/Error",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
			var failed error

			err := st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				failed = f(ctx, tx)
				return nil
			})

			return errors.Join(failed, err)
		}),
	},
	"a panic is swallowed": {
		"Transaction/Panic",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) (err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("something went wrong")
				}
			}()

			return st.Update(ctx, f)
		}),
	},
	"a panic commits": {
		"Transaction/Panic",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
			var panicked any

			err := st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				defer func() { panicked = recover() }()
				return f(ctx, tx)
			})

			if panicked != nil {
				panic(panicked)
			}

			return err
		}),
	},
	"a canceled context commits": {
		"Transaction/Canceled",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
			return st.Update(context.WithoutCancel(ctx), f)
		}),
	},
	"a canceled context begins": {
		"Transaction/CanceledBefore",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
			return st.Update(context.WithoutCancel(ctx), f)
		}),
	},
	"a conflict is not run again": {
		"Transaction/RunsAgain",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
			runs := 0

			return st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				if runs++; runs > 1 {
					return errOnlyOnce
				}

				return f(ctx, tx)
			})
		}),
	},
	"a conflict is run for ever": {
		"Transaction/GivesUp",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) (err error) {
			for range 50 {
				if err = st.Update(ctx, f); !errors.Is(err, fault.Conflict) {
					return err
				}
			}

			return err
		}),
	},
	"errors lose their word": {
		"Version/Invoice",
		mutateUpdate(func(st store.Store, ctx context.Context, f closure) error {
			if err := st.Update(ctx, f); err != nil {
				return errors.New(err.Error())
			}

			return nil
		}),
	},
	"the last put wins": {
		"Version/Invoice",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.putInvoice = func(ctx context.Context, i *invoice.Invoice) error {
				if stored, err := tx.InvoiceByID(ctx, i.ID); err == nil {
					i.Version = stored.Version
				}

				return tx.Tx.PutInvoice(ctx, i)
			}
		}),
	},
	"a field is forgotten": {
		"Fields/Invoice",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.putInvoice = func(ctx context.Context, i *invoice.Invoice) error {
				kept := i.CancelURL
				i.CancelURL = ""
				err := tx.Tx.PutInvoice(ctx, i)
				i.CancelURL = kept

				return err
			}
		}),
	},
	"a transfer is recorded twice": {
		"Unique/Transfer",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.putPayments = func(ctx context.Context, payments ...*invoice.Payment) error {
				for _, p := range payments {
					if err := tx.Tx.PutPayments(ctx, p); err != nil && !errors.Is(err, fault.Duplicate) {
						return err
					}
				}

				return nil
			}
		}),
	},
	"writes are seen after the commit only": {
		"Transaction/ReadsOwnWrites",
		mutateCall(func(st store.Store, tx *faultyTx) {
			tx.payments = st.Payments
		}),
	},
	"a write after the end is lost without a word": {
		"Transaction/Ended",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.putInvoice = func(ctx context.Context, i *invoice.Invoice) error {
				_ = tx.Tx.PutInvoice(ctx, i)
				return nil
			}
		}),
	},
	"a claim is given to everybody": {
		"Unique/IdempotencyKey",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.claim = func(ctx context.Context, r idempotency.Record, stale time.Time, wait time.Duration) error {
				if err := tx.Tx.ClaimIdempotencyKey(
					ctx, r, stale, wait,
				); err != nil &&
					!errors.Is(err, fault.Duplicate) {
					return err
				}

				return nil
			}
		}),
	},
	"rivals carry a request out too": {
		"Concurrent/IdempotencyKey",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.claim = func(ctx context.Context, r idempotency.Record, stale time.Time, wait time.Duration) error {
				if err := tx.Tx.ClaimIdempotencyKey(
					ctx, r, stale, wait,
				); err != nil &&
					!errors.Is(err, fault.Duplicate) {
					return err
				}

				return nil
			}
		}),
	},
	"claims never run out": {
		"Concurrent/StaleIdempotencyKey",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.claim = func(ctx context.Context, r idempotency.Record, _ time.Time, wait time.Duration) error {
				return tx.Tx.ClaimIdempotencyKey(ctx, r, time.Time{}, wait)
			}
		}),
	},
	"a lease is nobody's": {
		"Concurrent/Lease",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.readLeases = func(context.Context, []string) (map[string]lease.Lease, error) { return nil, nil }
			tx.replace = func(ctx context.Context, _, l lease.Lease) error { return tx.PutLease(ctx, l) }
		}),
	},
	"a fence does not rise": {
		"Lease",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.leases = func(ctx context.Context, names []string) (map[string]lease.Lease, error) {
				found, err := tx.Tx.Leases(ctx, names)
				for name, l := range found {
					l.Fence = min(l.Fence, 1)
					found[name] = l
				}

				return found, err
			}
		}),
	},
	"only the first leases are read": {
		"Leases",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.leases = func(ctx context.Context, names []string) (map[string]lease.Lease, error) {
				return tx.Tx.Leases(ctx, names[:min(len(names), 10)])
			}
		}),
	},
	"a lease that is named twice is none": {
		"Leases",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.leases = func(ctx context.Context, names []string) (map[string]lease.Lease, error) {
				found, err := tx.Tx.Leases(ctx, names)
				maps.DeleteFunc(found, func(name string, _ lease.Lease) bool {
					return slices.Contains(names[slices.Index(names, name)+1:], name)
				})

				return found, err
			}
		}),
	},
	"leases are made by asking for them": {
		"Leases",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.leases = func(ctx context.Context, names []string) (map[string]lease.Lease, error) {
				found, err := tx.Tx.Leases(ctx, names)
				for _, name := range names {
					if _, ok := found[name]; !ok && err == nil {
						err = tx.PutLease(ctx, lease.Lease{Name: name, Fence: 1})
					}
				}

				return found, err
			}
		}),
	},
	"a lease is replaced whatever it is": {
		"ReplacedLease",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.replace = func(ctx context.Context, _, l lease.Lease) error { return tx.PutLease(ctx, l) }
		}),
	},
	"numbers are reserved one by one": {
		"Concurrent/Numbers",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.numbers = func(ctx context.Context, counter string, _ int, first int64) (int64, error) {
				return tx.Tx.ReserveNumbers(ctx, counter, 1, first)
			}
		}),
	},
	"writers that end together fail together": {
		"Concurrent/Writers",
		func(st store.Store) store.Store {
			var last atomic.Pointer[error]

			return faultyStore{
				st,
				func(ctx context.Context, f closure) error {
					if err := st.Update(ctx, f); err != nil {
						last.Store(&err)
						return err
					}

					if other := last.Swap(nil); other != nil {
						return *other
					}

					return nil
				},
			}
		},
	},
	"deliveries are claimed again": {
		"Deliveries/Claim",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.deliveries = func(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
				c.Until = c.Now
				return tx.Tx.ClaimDeliveries(ctx, c)
			}
		}),
	},
	"a long queue comes first": {
		"Deliveries/ClaimFairly",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.deliveries = func(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
				c.PerEndpoint = c.Limit
				return tx.Tx.ClaimDeliveries(ctx, c)
			}
		}),
	},
	"endpoints that are left out have deliveries claimed": {
		"Deliveries/ClaimExcept",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.deliveries = func(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
				c.Except = nil
				return tx.Tx.ClaimDeliveries(ctx, c)
			}
		}),
	},
	"deliveries of test mode are claimed with live ones": {
		"Deliveries/ClaimLive",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.deliveries = func(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
				c.Live = false
				return tx.Tx.ClaimDeliveries(ctx, c)
			}
		}),
	},
	"disabled endpoints hear of events": {
		"Endpoints/OfOwner",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.endpoints = func(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error) {
				return tx.WebhookEndpoints(ctx, webhook.EndpointFilter{Owner: owner, Limit: 100})
			}
		}),
	},
	"all is pruned at once": {
		"Idempotency/Prune",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.pruneKeys = func(ctx context.Context, before time.Time, _ int) (int, error) {
				return tx.Tx.PruneIdempotencyKeys(ctx, before, 1000)
			}
		}),
	},
	"events outlive their time": {
		"Events/Prune",
		mutateCall(func(_ store.Store, tx *faultyTx) {
			tx.pruneEvents = func(context.Context, time.Time, int) (int, error) { return 0, nil }
		}),
	},
	"an id opens everybody's records": {
		"List/Invoices/Owners",
		mutateLists(func(st store.Store, l *lists) {
			l.invoice = func(ctx context.Context, _ event.Owner, id string) (invoice.Invoice, error) {
				return st.InvoiceByID(ctx, id)
			}
		}),
	},
	"lists know no mode": {
		"List/Invoices/Owners",
		mutateLists(func(st store.Store, l *lists) {
			l.invoices = func(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
				f.Owner.Livemode = false
				return st.Invoices(ctx, f)
			}
		}),
	},
	"a page begins with the last one's end": {
		"List/Invoices/Pages",
		mutateLists(func(st store.Store, l *lists) {
			l.invoices = func(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
				f.After += "~"
				if f.After == "~" {
					f.After = ""
				}

				return st.Invoices(ctx, f)
			}
		}),
	},
	"a page is cut before it is filtered": {
		"List/Invoices/Filters",
		mutateLists(func(st store.Store, l *lists) {
			l.invoices = func(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
				wanted := f.Statuses
				f.Statuses = nil
				all, err := st.Invoices(ctx, f)

				return slices.DeleteFunc(
					all,
					func(i invoice.Invoice) bool { return len(wanted) > 0 && !slices.Contains(wanted, i.Status) },
				), err
			}
		}),
	},
	"the first of several statuses counts": {
		"List/Invoices/Filters",
		mutateLists(func(st store.Store, l *lists) {
			l.invoices = func(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
				f.Statuses = f.Statuses[:min(1, len(f.Statuses))]
				return st.Invoices(ctx, f)
			}
		}),
	},
}
