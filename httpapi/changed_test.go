package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// TestChangedByAnotherProcess holds what one process makes to what another one changed before, or changes while it
// works, although accounts and endpoints are not read for each request.
func TestChangedByAnotherProcess(t *testing.T) {
	for _, kind := range storeKinds {
		if kind.create == nil {
			continue // one process has it alone
		}

		t.Run(kind.name, func(t *testing.T) {
			t.Run("endpoint before", func(t *testing.T) { testEndpointsChange(t, kind, false) })
			t.Run(
				"endpoint between read and commit",
				func(t *testing.T) { testEndpointsChange(t, kind, true) },
			)
			t.Run("endpoint while many create", func(t *testing.T) { testEndpointWhileManyCreate(t, kind) })
			t.Run("settings before", func(t *testing.T) { testSettingsChange(t, kind, false) })
			t.Run(
				"settings between read and commit",
				func(t *testing.T) { testSettingsChange(t, kind, true) },
			)
		})
	}
}

// twoProcesses starts two services over one database; late runs before the commits of the first.
func twoProcesses(t *testing.T, kind storeKind) (first, other *shop, late *lateStore) {
	t.Helper()

	name := kind.create(t)
	late = &lateStore{Store: kind.open(t, name)}
	first = openOn(t, late, nil, time.Now)
	other = boot(t, kind.open(t, name), nil, time.Now)
	other.account, other.key = first.account, first.key

	if _, err := first.engine.Accounts.UpdateSettings(
		t.Context(), first.account.ID,
		account.Settings{Name: "Corner Shop", RequestsPerSecond: 1_000_000, RequestBurst: 1_000_000},
	); err != nil {
		t.Fatal(err)
	}

	// Numbers are reserved in transactions of their own, more each time: there are enough for the test then.
	for i := range 8 {
		first.createInvoice(t, fmt.Sprint("warm-up-", i))
	}

	return first, other, late
}

// during makes a change before a creation of the first process or, between its reads and its commit, within it: then
// without an Idempotency-Key, whose claim keeps others from writing where a database has one writer.
func (l *lateStore) during(within bool, change func()) {
	if !within {
		change()
		return
	}

	l.next.Store(&change)
}

func testEndpointsChange(t *testing.T, kind storeKind, within bool) {
	first, other, late := twoProcesses(t, kind)
	owner := event.Owner{AccountID: first.account.ID}

	keys := []string{"", "keyed"}
	if within {
		keys = []string{"", ""}
	}

	for _, key := range keys {
		var added, gone webhook.Endpoint

		late.during(within, func() { added = other.addEndpoint(t) })

		made := first.createInvoice(t, once(key, "1"))
		if n := other.deliveries(t, made, added.ID); n != 1 {
			t.Errorf("an endpoint that was added has %d deliveries", n)
		}

		late.during(within, func() {
			disabled, err := other.engine.Webhooks.UpdateEndpoint(
				t.Context(), owner, added.ID, webhook.EndpointUpdate{Status: new(webhook.Disabled)},
			)
			if err != nil {
				t.Error(err)
			}

			gone = disabled
		})

		made = first.createInvoice(t, once(key, "2"))
		if n := other.deliveries(t, made, gone.ID); n != 0 {
			t.Errorf("an endpoint that was disabled has %d deliveries", n)
		}
	}
}

// testEndpointWhileManyCreate: an invoice that is asked for after an endpoint was made has a delivery, also where its
// transaction is committed together with those of others.
func testEndpointWhileManyCreate(t *testing.T, kind storeKind) {
	first, other, _ := twoProcesses(t, kind)

	var (
		working sync.WaitGroup
		made    atomic.Pointer[webhook.Endpoint]
		before  atomic.Int64
		mu      sync.Mutex
		after   []string
	)

	for worker := range 8 {
		working.Go(func() {
			for i, left := 0, 5; left > 0 && !t.Failed(); i++ {
				endpoint := made.Load()
				id := first.createInvoice(t, fmt.Sprintf("many-%d-%d", worker, i))

				before.Add(1)

				if endpoint == nil {
					continue
				}

				left--

				mu.Lock()

				after = append(after, id)
				mu.Unlock()
			}
		})
	}

	for before.Load() < 20 && !t.Failed() {
		first.createInvoice(t, fmt.Sprintf("main-%d", before.Load()))
	}

	endpoint := other.addEndpoint(t)
	made.Store(&endpoint)
	working.Wait()

	for _, id := range after {
		if n := other.deliveries(t, id, endpoint.ID); n != 1 {
			t.Errorf("invoice %s has %d deliveries to an endpoint that was made before it", id, n)
		}
	}
}

func testSettingsChange(t *testing.T, kind storeKind, within bool) {
	first, other, late := twoProcesses(t, kind)
	change := func(s account.Settings) func() {
		return func() {
			s.Name = "Corner Shop"
			if _, err := other.engine.Accounts.UpdateSettings(t.Context(), first.account.ID, s); err != nil {
				t.Error(err)
			}
		}
	}

	late.during(within, change(account.Settings{ToleranceBPS: 77, AcceptLatePayments: true}))

	inv, err := other.engine.Invoices.GetByID(t.Context(), first.createInvoice(t, ""))
	if err != nil || inv.ToleranceBPS != 77 || !inv.AcceptLate {
		t.Errorf(
			"with changed settings it has tolerance %d and %t: %v",
			inv.ToleranceBPS,
			inv.AcceptLate,
			err,
		)
	}

	late.during(within, change(account.Settings{Assets: []string{first.network.Network().Assets[1].ID}}))

	refused := first.do(t, creation(""))
	if f := refused.refused(t, 422); f.Code != "asset_not_enabled" {
		t.Errorf("an asset that was taken away is answered %+v", f)
	}
}

// once returns an Idempotency-Key, or none.
func once(key, suffix string) string {
	if key == "" {
		return ""
	}

	return key + suffix
}

// creation is a request for an invoice.
func creation(key string) request {
	q := request{method: "POST", path: "/v1/invoices", body: invoiceBody}
	if key != "" {
		q.header = header("Idempotency-Key", key)
	}

	return q
}

// createInvoice makes an invoice over HTTP and returns its id.
func (s *shop) createInvoice(t *testing.T, key string) string {
	t.Helper()

	answer := s.do(t, creation(key))

	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(answer.body, &made); err != nil || answer.status != http.StatusOK {
		t.Errorf("a creation was answered %d: %s", answer.status, answer.body)
	}

	return made.ID
}

// addEndpoint makes an endpoint that receives every event.
func (s *shop) addEndpoint(t *testing.T) webhook.Endpoint {
	t.Helper()

	e, _, err := s.engine.Webhooks.CreateEndpoint(t.Context(), webhook.EndpointParams{
		Owner:  event.Owner{AccountID: s.account.ID},
		URL:    "http://127.0.0.1:9/hook",
		Events: []event.Type{"*"},
	})
	if err != nil {
		t.Error(err)
	}

	return e
}

// deliveries returns how many deliveries of an invoice's events an endpoint has.
func (s *shop) deliveries(t *testing.T, invoiceID, endpointID string) (n int) {
	t.Helper()

	all, _, err := s.engine.Webhooks.ListDeliveries(t.Context(), webhook.DeliveryFilter{
		Owner:      event.Owner{AccountID: s.account.ID},
		EndpointID: endpointID,
		Limit:      100,
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, d := range all {
		if d.InvoiceID == invoiceID {
			n++
		}
	}

	return n
}

// lateStore is a store that runs what comes next once, between the reads of a transaction and its commit.
type lateStore struct {
	payments.Store
	next atomic.Pointer[func()]
}

// Update runs a transaction.
func (l *lateStore) Update(ctx context.Context, f func(context.Context, store.Tx) error) error {
	return l.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}

		if next := l.next.Swap(nil); next != nil {
			(*next)()
		}

		return nil
	})
}
