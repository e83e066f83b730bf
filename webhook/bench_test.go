//go:build unix

package webhook_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/webhook"
)

// BenchmarkDeliveries measures deliveries over PostgreSQL, everything counted: claim, signature,
// request, log and state on disk. Each round sends as many plain requests to the same servers, and
// delivers as much beside a million deliveries that ended, so that the ratios are of one moment on
// one machine:
//
//	of_plain     deliveries per second, as a part of plain Go POSTs per second; wanted: at least 0.2
//	of_empty     the same beside a million ended deliveries, as a part of that without them; wanted: at least 0.9
func BenchmarkDeliveries(b *testing.B) {
	const each, endpoints, ended = 4000, 100, 1_000_000

	receivers := newReceivers(b, endpoints)
	empty, full := newOffice(b, receivers), newOffice(b, receivers)
	full.fill(b, ended)

	var plain, few, many time.Duration
	for round := 0; b.Loop(); round++ {
		plain += receivers.post(b, each)
		if round%2 == 0 {
			few += empty.deliver(b, each)
			many += full.deliver(b, each)
		} else {
			many += full.deliver(b, each)
			few += empty.deliver(b, each)
		}
	}

	perSecond := func(took time.Duration) float64 { return float64(each*b.N) / took.Seconds() }

	b.ReportMetric(0, "ns/op")
	b.ReportMetric(perSecond(plain), "plain/s")
	b.ReportMetric(perSecond(few), "deliveries/s")
	b.ReportMetric(perSecond(few)/perSecond(plain), "of_plain")
	b.ReportMetric(perSecond(many)/perSecond(few), "of_empty")
}

// BenchmarkHangingEndpoint measures how long deliveries to 99 endpoints of seven accounts wait over
// PostgreSQL, from the commit of the event to the request, while all answer and while the hundredth
// hangs:
//
//	p99_of_healthy   the 99th percentile while one hangs, as a part of that while all answer; wanted: about 1
func BenchmarkHangingEndpoint(b *testing.B) {
	const endpoints, batches = 100, 30

	receivers := newReceivers(b, endpoints)
	o := newOffice(b, receivers)

	var healthy, hanging []time.Duration
	for b.Loop() {
		healthy = append(healthy, o.delays(b, batches, 100*time.Millisecond, 1)...)

		receivers.hangs.Store(true)

		hanging = append(hanging, o.delays(b, batches, 100*time.Millisecond, 1)...)

		receivers.hangs.Store(false)
	}

	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p99(healthy), "healthy_p99_ms")
	b.ReportMetric(p99(hanging), "hanging_p99_ms")
	b.ReportMetric(p99(hanging)/p99(healthy), "p99_of_healthy")
}

// p99 returns the 99th percentile in milliseconds.
func p99(all []time.Duration) float64 {
	slices.Sort(all)
	return all[len(all)*99/100].Seconds() * 1000
}

// BenchmarkDrippingEndpoints measures how long deliveries to 936 endpoints of 59 accounts wait over PostgreSQL,
// from the commit of the event to the request, while all answer and while the 64 endpoints of four more accounts
// answer at once and then send their bodies byte by byte, without end:
//
//	p99_of_healthy   the 99th percentile while 64 drip, as a part of that while all answer; wanted: at most 2
func BenchmarkDrippingEndpoints(b *testing.B) {
	const endpoints, dripping, batches, pace = 1000, 64, 10, 4 * time.Second

	receivers := newReceivers(b, endpoints)
	o := newOffice(b, receivers)

	var healthy, beside []time.Duration
	for b.Loop() {
		healthy = append(healthy, o.delays(b, batches, pace, dripping)...)

		receivers.dripping.Store(dripping)

		beside = append(beside, o.delays(b, batches, pace, dripping)...)

		receivers.dripping.Store(0)
	}

	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p99(healthy), "healthy_p99_ms")
	b.ReportMetric(p99(beside), "dripping_p99_ms")
	b.ReportMetric(p99(beside)/p99(healthy), "p99_of_healthy")
}

// delays makes a delivery for each endpoint at a pace, and returns how long each took to arrive; not those of the
// first endpoints, which may be ill.
func (o *office) delays(b *testing.B, batches int, pace time.Duration, ill int) (all []time.Duration) {
	b.Helper()

	first := o.made

	var made []time.Time

	o.receivers.uncounted.Store(int64(ill))
	defer o.receivers.uncounted.Store(0)

	arrived := o.receivers.expect(batches * (len(o.endpoints) - ill))

	ctx, stop := context.WithTimeout(b.Context(), time.Minute+time.Duration(batches)*pace)
	defer stop()

	ended := make(chan error, 1)
	go func() { ended <- internal.Of(o.engine).Deliverer.Run(ctx) }()

	tick := time.NewTicker(pace)
	defer tick.Stop()

	for range batches {
		o.make(b, len(o.endpoints))

		made = append(made, time.Now())

		internal.Of(o.engine).Deliverer.Wake()
		<-tick.C
	}

	select {
	case <-arrived:
	case <-ctx.Done():
		b.Fatal("the deliveries did not arrive in time")
	}

	stop()

	if err := <-ended; err != nil {
		b.Fatal(err)
	}

	for n := first; n < o.made; n++ {
		at, ok := o.receivers.at.LoadAndDelete(deliveryName(n))
		if n%len(o.endpoints) < ill {
			continue
		}

		if !ok {
			b.Fatalf("delivery %d did not arrive", n)
		}

		all = append(all, at.(time.Time).Sub(made[(n-first)/len(o.endpoints)]))
	}
	// of the ill ones
	if _, err := o.db.ExecContext(
		b.Context(), "DELETE FROM payments_deliveries WHERE status = 'pending'",
	); err != nil {
		b.Fatal(err)
	}

	return all
}

// benchEnvelope is about as long as that of an invoice.
var benchEnvelope = []byte(
	`{"id":"evt_","type":"invoice.paid","api_version":"v1",` +
		`"livemode":false,"sequence":3,"data":{"object":{"id":"` + strings.Repeat(
		"0123456789abcdef", 90,
	) + `"}},"request":{}}`,
)

// receivers are merchants' servers, each on a port of its own, that take everything.
type receivers struct {
	urls  []string
	taken atomic.Int64
	full  atomic.Pointer[chan struct{}] // closed when want requests were taken
	want  atomic.Int64
	// hangs has the first server never answer, and dripping how many of the first never end their bodies; at is
	// when a delivery arrived, by its id.
	hangs    atomic.Bool
	dripping atomic.Int64
	// uncounted is how many of the first are not waited for.
	uncounted atomic.Int64
	numbers   map[string]int64 // of servers, by host
	at        sync.Map
}

func newReceivers(b *testing.B, n int) *receivers {
	b.Helper()

	s := &receivers{numbers: map[string]int64{}}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if s.hangs.Load() && s.urls[0] == "http://"+r.Host+"/hook" {
				<-r.Context().Done()
				return
			}

			if id := r.Header.Get(webhook.DeliveryIDHeader); id != "" {
				s.at.LoadOrStore(id, time.Now())
			}

			if s.numbers[r.Host] < s.dripping.Load() {
				drip(w, r)
				return
			}

			_, _ = io.WriteString(w, "thank you")

			if s.numbers[r.Host] >= s.uncounted.Load() && s.taken.Add(1) == s.want.Load() {
				close(*s.full.Load())
			}
		}),
	}

	b.Cleanup(func() { _ = server.Close() })

	var listeners []net.Listener

	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}

		s.urls = append(s.urls, "http://"+l.Addr().String()+"/hook")
		s.numbers[l.Addr().String()] = int64(i)
		listeners = append(listeners, l)
	}

	for _, l := range listeners {
		go func() { _ = server.Serve(l) }()
	}

	return s
}

// drip sends the headers and then a byte a second, until the client goes.
func drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()

	for {
		_, _ = io.WriteString(w, ".")
		_ = http.NewResponseController(w).Flush()

		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// expect returns a channel that is closed after n more requests.
func (s *receivers) expect(n int) <-chan struct{} {
	full := make(chan struct{})
	s.full.Store(&full)
	s.taken.Store(0)
	s.want.Store(int64(n))

	return full
}

// post sends n plain requests, as many at once as a Service does.
func (s *receivers) post(b *testing.B, n int) time.Duration {
	b.Helper()

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	defer client.CloseIdleConnections()

	s.expect(n)

	begun := time.Now()

	var (
		next atomic.Int64
		wg   sync.WaitGroup
	)
	for range 256 {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				response, err := client.Post(
					s.urls[i%len(s.urls)], "application/json", bytes.NewReader(benchEnvelope),
				)
				if err != nil {
					b.Error(err)
					return
				}

				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		})
	}

	wg.Wait()

	return time.Since(begun)
}

// office is an engine over a database of its own, with an endpoint for each receiver, 16 to an account.
type office struct {
	db        *sql.DB
	store     store.Store
	engine    *payments.Engine
	receivers *receivers
	endpoints []webhook.Endpoint
	made      int
}

func newOffice(b *testing.B, s *receivers) *office {
	b.Helper()

	db, err := sql.Open("pgx", testenv.PostgresWith(b, testenv.PostgresOptions{Fsync: true}))
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	o := &office{db: db, receivers: s}
	must := func(err error) {
		b.Helper()

		if err != nil {
			b.Fatal(err)
		}
	}
	must(postgres.Migrate(b.Context(), db, postgres.Options{}))
	o.store, err = postgres.New(db, postgres.Options{})
	must(err)

	network := sim.New(sim.Config{})
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Minute, nil)
	must(err)
	o.engine, err = payments.New(payments.Config{
		Store:        o.store,
		Drivers:      []payments.ChainDriver{network},
		Signer:       sim.NewSigner(7, nil),
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:          slog.New(slog.DiscardHandler),
	})
	must(err)

	var owner event.Owner

	for i, url := range s.urls {
		if i%16 == 0 {
			a, err := o.engine.Accounts.CreateAccount(b.Context(), account.Settings{Name: "Corner Shop"})
			must(err)

			owner = event.Owner{AccountID: a.ID}
		}

		e, _, err := o.engine.Webhooks.CreateEndpoint(
			b.Context(), webhook.EndpointParams{Owner: owner, URL: url, Events: []event.Type{"*"}},
		)
		must(err)

		o.endpoints = append(o.endpoints, e)
	}

	return o
}

// fill adds deliveries that ended, each with its event, at the same endpoints.
func (o *office) fill(b *testing.B, n int) {
	b.Helper()

	ids := make([]string, len(o.endpoints))

	owners := make([]string, len(o.endpoints))
	for i, e := range o.endpoints {
		ids[i], owners[i] = e.ID, e.Owner.AccountID
	}

	for _, text := range []string{
		`INSERT INTO payments_events SELECT 'evt_' || lpad(to_hex(i), 24, '0'), ($2::text[])[1 + i % $4], false,
			'invoice.paid',
			'object-' || i, 'object-' || i, '', 1,
			convert_to('{}', 'UTF8'), now() - i * interval '1 second', '', ''
		FROM generate_series(1, $3::int) i WHERE $1::text[] IS NOT NULL`,
		`INSERT INTO payments_deliveries (id, account_id, livemode, event_id, event_type, invoice_id,
			payment_id, endpoint_id, cause, status, attempts, log, last_attempt_at,
			delivered_at, claimed_by, fence, created_at, version)
		SELECT lpad(to_hex(i), 24, '0'), ($2::text[])[1 + i % $4], false,
			'evt_' || lpad(to_hex(i), 24, '0'), 'invoice.paid', 'object-' || i, '', ($1::text[])[1 + i % $4], 'event',
			'succeeded', 1, ('[{"at":"2026-01-01T00:00:00Z","http_status":200,"duration_ms":12,' ||
			'"request":{"headers":{"content-type":"application/json"}}}]')::json,
			now() - i * interval '1 second', now() - i * interval '1 second', '', 1, now() - i * interval '1 second', 3
		FROM generate_series(1, $3::int) i`,
	} {
		if _, err := o.db.ExecContext(b.Context(), text, ids, owners, n, len(ids)); err != nil {
			b.Fatal(err)
		}
	}

	for _, text := range []string{"VACUUM ANALYZE", "CHECKPOINT"} { // what the filling left to do
		if _, err := o.db.ExecContext(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}

// deliver makes n deliveries, each of an event of its own, and returns how long it took until all
// had arrived and all results were stored.
func (o *office) deliver(b *testing.B, n int) time.Duration {
	b.Helper()
	o.make(b, n)

	return o.send(b, n)
}

// make makes n deliveries that are due, each of an event of its own, in turn to each endpoint.
func (o *office) make(b *testing.B, n int) {
	b.Helper()

	now := time.Now()

	for left := n; left > 0; left -= min(left, 500) {
		from := o.made

		err := o.store.Update(b.Context(), func(ctx context.Context, tx store.Tx) error {
			for i := range min(left, 500) {
				e := o.endpoints[(from+i)%len(o.endpoints)]
				id := deliveryName(from + i)
				ev := event.Event{
					ID:        "evt_" + id,
					Owner:     e.Owner,
					Type:      event.InvoicePaid,
					ObjectID:  id,
					InvoiceID: id,
					Sequence:  1,
					Envelope:  benchEnvelope,
					CreatedAt: now,
				}

				d := webhook.Delivery{
					ID:            id,
					Owner:         e.Owner,
					EventID:       ev.ID,
					EventType:     ev.Type,
					InvoiceID:     id,
					EndpointID:    e.ID,
					Trigger:       webhook.ByEvent,
					Status:        webhook.DeliveryPending,
					NextAttemptAt: now,
					CreatedAt:     now,
				}
				if err := tx.PutEvents(ctx, ev); err != nil {
					return err
				}

				if err := tx.PutDeliveries(ctx, &d); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			b.Fatal(err)
		}

		o.made += min(left, 500)
	}
}

// deliveryName is the id of the n-th delivery that was made.
func deliveryName(n int) string { return fmt.Sprintf("f%023x", n) }

// send runs the worker until the last n deliveries are stored as delivered.
func (o *office) send(b *testing.B, n int) time.Duration {
	b.Helper()

	arrived := o.receivers.expect(n)

	ctx, stop := context.WithTimeout(b.Context(), time.Minute)
	defer stop()

	ended := make(chan error, 1)
	begun := time.Now()

	go func() { ended <- internal.Of(o.engine).Deliverer.Run(ctx) }()

	select {
	case <-arrived:
	case <-ctx.Done():
	}

	stop()

	if err := <-ended; err != nil {
		b.Fatal(err)
	}

	took := time.Since(begun)

	var stored int
	if err := o.db.QueryRowContext(b.Context(), "SELECT count(*) FROM payments_deliveries WHERE id >= $1 "+
		"AND status = 'succeeded' AND attempts = 1", deliveryName(o.made-n)).
		Scan(&stored); err != nil ||
		stored != n {
		b.Fatalf("%d of %d deliveries are stored as delivered at the first try (%v)", stored, n, err)
	}

	return took
}
