package deliver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/lease"
	"github.com/seed-8ee7f392/payments/webhook"
)

// memory is a DB for tests, with the part of the engine that this package depends on: it renders
// appended events, stores them and fans them out before the commit. It runs every closure twice and
// throws the first run away, as a store may, and again after a conflict. A closure that reads the
// DB instead of its transaction hangs.
type memory struct {
	mu      sync.Mutex
	rows    rows
	service *Deliverer
	ids     interface{ Event() string }
	now     func() time.Time
	// refuse, when set, is asked before every commit.
	refuse func() error
	// damaged is the id of an event that cannot be read.
	damaged string
	locked  []string // accounts that were locked
}

type rows struct {
	endpoints  map[string]webhook.Endpoint
	deliveries map[string]webhook.Delivery
	events     map[string]event.Event
}

func newMemory() *memory {
	return &memory{
		rows: rows{map[string]webhook.Endpoint{}, map[string]webhook.Delivery{}, map[string]event.Event{}},
	}
}

func (m *memory) Update(ctx context.Context, f func(context.Context, webhook.Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	var tx *memoryTx
	for tries, ran := 0, 0; ran < 2; tries++ {
		tx = &memoryTx{
			reader: reader{func() (rows, func()) { return tx.rows, func() {} }},
			rows:   m.rows.clone(),
		}

		err := f(ctx, tx)
		if errors.Is(err, fault.Conflict) && tries < 10 {
			continue
		}

		if err != nil {
			return err
		}

		ran++
	}

	for _, e := range tx.appended {
		if e.ID == "" {
			e.ID = m.ids.Event()
		}

		e.CreatedAt = m.now()

		subject, err := json.Marshal(e.Payload)
		if err != nil {
			return err
		}

		e.Envelope = fmt.Appendf(
			nil, `{"id":%q,"type":%q,"sequence":%d,"data":{"object":%s}}`, e.ID, e.Type, e.Sequence,
			subject,
		)

		tx.rows.events[e.ID] = e
		if err := m.service.FanOutTx(ctx, tx, []event.Event{e}); err != nil {
			return err
		}
	}

	if err := ctx.Err(); err != nil {
		return err
	}

	if m.refuse != nil {
		if err := m.refuse(); err != nil {
			return err
		}
	}

	m.rows = tx.rows
	m.locked = append(m.locked, tx.locked...)

	return nil
}

// append stores events as another package would.
func (m *memory) append(ctx context.Context, events ...event.Event) error {
	return m.Update(
		ctx,
		func(ctx context.Context, tx webhook.Tx) error { return tx.AppendEvents(ctx, events...) },
	)
}

func (r rows) clone() rows {
	return rows{maps.Clone(r.endpoints), maps.Clone(r.deliveries), maps.Clone(r.events)}
}

// reader answers reads from what open returns, until its second result is called.
type reader struct{ open func() (rows, func()) }

func (m *memory) reader() reader {
	return reader{
		func() (rows, func()) {
			m.mu.Lock()
			return m.rows, m.mu.Unlock
		},
	}
}

func (m *memory) Event(ctx context.Context, o event.Owner, id string) (event.Event, error) {
	return m.reader().Event(ctx, o, id)
}

func (m *memory) Events(ctx context.Context, f event.Filter) ([]event.Event, error) {
	return m.reader().Events(ctx, f)
}

func (m *memory) EventsByID(ctx context.Context, ids []string) ([]event.Event, error) {
	if slices.Contains(ids, m.damaged) {
		return nil, fmt.Errorf("event %s is damaged", m.damaged)
	}

	return m.reader().EventsByID(ctx, ids)
}

func (m *memory) EndpointsByID(ctx context.Context, ids []string) ([]webhook.Endpoint, error) {
	return m.reader().EndpointsByID(ctx, ids)
}

func (m *memory) DeliveriesByID(ctx context.Context, ids []string) ([]webhook.Delivery, error) {
	return m.reader().DeliveriesByID(ctx, ids)
}

func (m *memory) WebhookEndpoint(ctx context.Context, o event.Owner, id string) (webhook.Endpoint, error) {
	return m.reader().WebhookEndpoint(ctx, o, id)
}

func (m *memory) WebhookEndpoints(ctx context.Context, f webhook.EndpointFilter) ([]webhook.Endpoint, error) {
	return m.reader().WebhookEndpoints(ctx, f)
}

func (m *memory) Delivery(ctx context.Context, o event.Owner, id string) (webhook.Delivery, error) {
	return m.reader().Delivery(ctx, o, id)
}

func (m *memory) Deliveries(ctx context.Context, f webhook.DeliveryFilter) ([]webhook.Delivery, error) {
	return m.reader().Deliveries(ctx, f)
}

func (m *memory) PendingDeliveries(ctx context.Context, id string) (int, error) {
	return m.reader().PendingDeliveries(ctx, id)
}

var errNoRow = fault.New(fault.NotFound, "", "no such row")

func (r reader) EventsByID(_ context.Context, ids []string) ([]event.Event, error) {
	rows, done := r.open()
	defer done()

	return several(rows.events, ids), nil
}

func (r reader) EndpointsByID(_ context.Context, ids []string) ([]webhook.Endpoint, error) {
	rows, done := r.open()
	defer done()

	return several(rows.endpoints, ids), nil
}

func (r reader) DeliveriesByID(_ context.Context, ids []string) ([]webhook.Delivery, error) {
	rows, done := r.open()
	defer done()

	return several(rows.deliveries, ids), nil
}

func several[T any](rows map[string]T, ids []string) (out []T) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if row, ok := rows[id]; ok {
			out = append(out, row)
		}
	}

	return out
}

func (r reader) Event(_ context.Context, o event.Owner, id string) (event.Event, error) {
	rows, done := r.open()
	defer done()

	e, ok := rows.events[id]
	if !ok || e.Owner != o {
		return event.Event{}, errNoRow
	}

	return e, nil
}

func (r reader) Events(_ context.Context, f event.Filter) ([]event.Event, error) {
	rows, done := r.open()
	defer done()

	return page(rows.events, f.After, f.Limit, func(e event.Event) bool { return e.Owner == f.Owner }), nil
}

func (r reader) WebhookEndpoint(_ context.Context, o event.Owner, id string) (webhook.Endpoint, error) {
	rows, done := r.open()
	defer done()

	e, ok := rows.endpoints[id]
	if !ok || e.Owner != o {
		return webhook.Endpoint{}, errNoRow
	}

	return e, nil
}

func (r reader) WebhookEndpoints(_ context.Context, f webhook.EndpointFilter) ([]webhook.Endpoint, error) {
	rows, done := r.open()
	defer done()

	return page(
		rows.endpoints, f.After, f.Limit,
		func(e webhook.Endpoint) bool { return e.Owner == f.Owner },
	), nil
}

func (r reader) Delivery(_ context.Context, o event.Owner, id string) (webhook.Delivery, error) {
	rows, done := r.open()
	defer done()

	d, ok := rows.deliveries[id]
	if !ok || d.Owner != o {
		return webhook.Delivery{}, errNoRow
	}

	return d, nil
}

func (r reader) Deliveries(_ context.Context, f webhook.DeliveryFilter) ([]webhook.Delivery, error) {
	rows, done := r.open()
	defer done()

	return page(rows.deliveries, f.After, f.Limit, func(d webhook.Delivery) bool {
		return d.Owner == f.Owner && (f.EventID == "" || d.EventID == f.EventID) &&
			(f.EndpointID == "" || d.EndpointID == f.EndpointID) &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, d.Status))
	}), nil
}

func (r reader) PendingDeliveries(_ context.Context, endpointID string) (n int, _ error) {
	rows, done := r.open()
	defer done()

	for _, d := range rows.deliveries {
		if d.EndpointID == endpointID && d.Status == webhook.DeliveryPending {
			n++
		}
	}

	return n, nil
}

func page[T any](rows map[string]T, after string, limit int, want func(T) bool) []T {
	var out []T
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(rows))) {
		if (after == "" || id < after) && want(rows[id]) && len(out) < limit {
			out = append(out, rows[id])
		}
	}

	return out
}

type memoryTx struct {
	reader
	rows     rows
	appended []event.Event
	locked   []string
}

func (tx *memoryTx) Leases(context.Context, []string) (map[string]lease.Lease, error) {
	return nil, errors.New("not used by webhook")
}

func (tx *memoryTx) ReadLeases(context.Context, []string) (map[string]lease.Lease, error) {
	return nil, errors.New("not used by webhook")
}

func (tx *memoryTx) ReplaceLease(context.Context, lease.Lease, lease.Lease) error {
	return errors.New("not used by webhook")
}

func (tx *memoryTx) PutLease(context.Context, lease.Lease) error {
	return errors.New("not used by webhook")
}

func (tx *memoryTx) AppendEvents(_ context.Context, events ...event.Event) error {
	tx.appended = append(tx.appended, events...)
	return nil
}

func (tx *memoryTx) LockAccount(_ context.Context, id string) error {
	tx.locked = append(tx.locked, id)
	return nil
}

func put[T any](rows map[string]T, id string, row *T, stored, given int64, version *int64) error {
	_, exists := rows[id]
	switch {
	case given == 0 && exists:
		return fault.New(fault.Duplicate, "", "row %s exists", id)
	case given != stored:
		return fault.New(fault.Conflict, "", "row %s has version %d, not %d", id, stored, given)
	}

	*version = given + 1
	rows[id] = *row

	return nil
}

func (tx *memoryTx) PutEndpoint(_ context.Context, e *webhook.Endpoint) error {
	return put(tx.rows.endpoints, e.ID, e, tx.rows.endpoints[e.ID].Version, e.Version, &e.Version)
}

func (tx *memoryTx) DeleteEndpoint(_ context.Context, id string) error {
	delete(tx.rows.endpoints, id)
	return nil
}

func (tx *memoryTx) PutDeliveries(_ context.Context, ds ...*webhook.Delivery) error {
	for _, d := range ds {
		if err := put(
			tx.rows.deliveries, d.ID, d, tx.rows.deliveries[d.ID].Version, d.Version, &d.Version,
		); err != nil {
			return err
		}
	}

	return nil
}

func (tx *memoryTx) ClaimDeliveries(_ context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
	var due []webhook.Delivery

	for _, d := range tx.rows.deliveries {
		if d.Status == webhook.DeliveryPending && !d.NextAttemptAt.After(c.Now) &&
			(d.ClaimedBy == "" || d.ClaimedBy == c.By || !c.Now.Before(d.ClaimedUntil)) &&
			!slices.Contains(c.Except, d.EndpointID) && (d.Owner.Livemode || !c.Live) {
			due = append(due, d)
		}
	}

	slices.SortFunc(due, func(a, b webhook.Delivery) int {
		return cmp.Or(a.NextAttemptAt.Compare(b.NextAttemptAt), cmp.Compare(a.ID, b.ID))
	})

	var claimed []webhook.Delivery

	of := map[string]int{}
	for _, d := range due {
		if of[d.EndpointID] >= c.PerEndpoint || len(claimed) == c.Limit {
			continue
		}

		of[d.EndpointID]++
		d.LapsedAt = d.ClaimedUntil
		d.ClaimedBy, d.ClaimedUntil, d.Fence, d.Version = c.By, c.Until, d.Fence+1, d.Version+1
		tx.rows.deliveries[d.ID] = d
		claimed = append(claimed, d)
	}

	return claimed, nil
}

func (tx *memoryTx) FailDeliveries(_ context.Context, endpointID string) error {
	for id, d := range tx.rows.deliveries {
		if d.EndpointID == endpointID && d.Status == webhook.DeliveryPending {
			d.Status, d.NextAttemptAt, d.Version = webhook.DeliveryFailed, time.Time{}, d.Version+1
			tx.rows.deliveries[id] = d
		}
	}

	return nil
}

func (tx *memoryTx) PruneDeliveries(_ context.Context, before time.Time, limit int) (n int, _ error) {
	for id, d := range tx.rows.deliveries {
		if d.Status != webhook.DeliveryPending && d.CreatedAt.Before(before) && n < limit {
			delete(tx.rows.deliveries, id)

			n++
		}
	}

	return n, nil
}

func (tx *memoryTx) PruneEvents(_ context.Context, before time.Time, limit int) (n int, _ error) {
	for id, e := range tx.rows.events {
		if e.CreatedAt.Before(before) && n < limit {
			delete(tx.rows.events, id)

			n++
		}
	}

	return n, nil
}

func (tx *memoryTx) EndpointsOf(_ context.Context, owner event.Owner) (out []webhook.Endpoint, _ error) {
	for _, id := range slices.Sorted(maps.Keys(tx.rows.endpoints)) {
		if e := tx.rows.endpoints[id]; e.Owner == owner && e.Status != webhook.Disabled {
			out = append(out, e)
		}
	}

	return out, nil
}
