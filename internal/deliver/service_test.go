package deliver

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/seal"
	"github.com/seed-8ee7f392/payments/webhook"
)

var (
	merchant = event.Owner{AccountID: "65a000000000000000000001", Livemode: true}
	tester   = event.Owner{AccountID: "65a000000000000000000001"}
	stranger = event.Owner{AccountID: "65a000000000000000000002", Livemode: true}
)

// steady is entropy that makes every jitter −10 %; secrets are random.
type steady struct{}

func (steady) Read(p []byte) (int, error) {
	if len(p) == 8 {
		clear(p)
		return len(p), nil
	}

	return rand.Read(p)
}

// harness is a Deliverer and a webhook.Service over an in-memory store.
type harness struct {
	*webhook.Service
	*Deliverer
	t   testing.TB
	db  *memory
	log *bytes.Buffer
}

// newHarness returns a harness whose clock stands still, unless change sets another. Loopback
// addresses are open.
func newHarness(t testing.TB, change func(*Config)) *harness {
	t.Helper()
	h := &harness{t: t, db: newMemory(), log: &bytes.Buffer{}}

	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}

	c := Config{
		DB:   h.db,
		Seal: sealer,
		Now:  func() time.Time { return start },
		Log:  slog.New(slog.NewTextHandler(h.log, nil)),
		HTTP: HTTP{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}
	if change != nil {
		change(&c)
	}

	c.IDs = id.New(c.Now, nil)

	h.db.ids, h.db.now = c.IDs, c.Now
	h.Deliverer = New(c)

	if h.Service, err = webhook.New(webhook.Config{
		DB:      c.DB,
		IDs:     c.IDs,
		Seal:    c.Seal,
		Allow:   c.HTTP.Allow,
		Now:     c.Now,
		Entropy: c.Entropy,
	}); err != nil {
		t.Fatal(err)
	}

	h.db.service = h.Deliverer

	return h
}

func (h *harness) endpoint(owner event.Owner, url string, types ...event.Type) (webhook.Endpoint, string) {
	h.t.Helper()

	if len(types) == 0 {
		types = []event.Type{"*"}
	}

	e, secret, err := h.CreateEndpoint(
		context.Background(), webhook.EndpointParams{Owner: owner, URL: url, Events: types},
	)
	if err != nil {
		h.t.Fatal(err)
	}

	return e, secret
}

// happen makes an event about an invoice.
func (h *harness) happen(owner event.Owner, t event.Type) {
	h.t.Helper()

	err := h.db.append(
		context.Background(),
		event.Event{
			Owner:     owner,
			Type:      t,
			ObjectID:  "65a0000000000000000000aa",
			InvoiceID: "65a0000000000000000000aa",
			Sequence:  1,
		},
	)
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) deliveries(endpointID string) []webhook.Delivery {
	h.t.Helper()
	h.db.mu.Lock()
	defer h.db.mu.Unlock()

	return page(
		h.db.rows.deliveries, "", 1<<30,
		func(d webhook.Delivery) bool { return endpointID == "" || d.EndpointID == endpointID },
	)
}

func (h *harness) reread(e webhook.Endpoint) webhook.Endpoint {
	h.t.Helper()

	e, err := h.GetEndpoint(context.Background(), e.Owner, e.ID)
	if err != nil {
		h.t.Fatal(err)
	}

	return e
}

func (h *harness) events(t event.Type) (n int) {
	h.db.mu.Lock()
	defer h.db.mu.Unlock()

	for _, e := range h.db.rows.events {
		if e.Type == t {
			n++
		}
	}

	return n
}

func TestCreateEndpoint(t *testing.T) {
	h := newHarness(t, nil)

	e, secret := h.endpoint(
		merchant, "https://example.com/hook", event.InvoicePaid, event.InvoicePaid,
		event.PayoutFailed,
	)
	if !strings.HasPrefix(secret, "whsec_") || len(secret) != len("whsec_")+44 {
		t.Errorf("secret %q is not whsec_ and 32 bytes in base64", secret)
	}

	if e.Status != webhook.Enabled || e.SecretLast4 != secret[len(secret)-4:] || !e.CreatedAt.Equal(start) ||
		e.Version != 1 ||
		!slices.Equal(e.Events, []event.Type{event.InvoicePaid, event.PayoutFailed}) {
		t.Errorf("created %+v", e)
	}

	if bytes.Contains(e.SealedSecret, []byte(secret)) {
		t.Error("the secret is stored as it is")
	}

	if got := h.reread(e); got.Version != 1 || !bytes.Equal(got.SealedSecret, e.SealedSecret) {
		t.Errorf("stored %+v", got)
	}

	if secrets, err := e.OpenSecrets(
		h.Deliverer.seal, start,
	); err != nil ||
		!slices.Equal(secrets, []string{secret}) {
		t.Errorf("the stored secret opens as %q, error %v", secrets, err)
	}

	moved := e

	moved.ID = "65a0000000000000000000ff"
	if _, err := moved.OpenSecrets(h.Deliverer.seal, start); err == nil {
		t.Error("a sealed secret that was moved to another endpoint opened")
	}

	if _, err := h.GetEndpoint(t.Context(), stranger, e.ID); true {
		wantFault(t, err, fault.NotFound, "resource_missing")
	}

	if _, err := h.GetEndpoint(t.Context(), tester, e.ID); true {
		wantFault(t, err, fault.NotFound, "resource_missing")
	}
}

func TestSixteenEndpointsPerAccountAndMode(t *testing.T) {
	h := newHarness(t, nil)

	var last webhook.Endpoint
	for i := range maxEndpoints {
		last, _ = h.endpoint(merchant, fmt.Sprintf("https://example.com/%d", i))
	}

	params := webhook.EndpointParams{
		Owner:  merchant,
		URL:    "https://example.com/more",
		Events: []event.Type{"*"},
	}
	_, _, err := h.CreateEndpoint(t.Context(), params)
	wantFault(t, err, fault.State, "webhook_endpoint_limit_exceeded")
	h.endpoint(tester, "https://example.com/test-mode-counts-for-itself")
	h.endpoint(stranger, "https://example.com/and-so-does-another-account")

	if len(h.db.locked) != maxEndpoints+2 {
		t.Errorf("the account was locked %d times", len(h.db.locked))
	}

	if err := h.DeleteEndpoint(t.Context(), merchant, last.ID); err != nil {
		t.Fatal(err)
	}

	if _, _, err := h.CreateEndpoint(t.Context(), params); err != nil {
		t.Errorf("after one was deleted: %v", err)
	}
}

func TestRotateSecret(t *testing.T) {
	now := start
	h := newHarness(t, func(c *Config) { c.Now = func() time.Time { return now } })
	e, first := h.endpoint(merchant, "https://example.com/hook")
	rotate := func(overlap time.Duration) string {
		t.Helper()

		_, secret, err := h.RotateSecret(t.Context(), merchant, e.ID, overlap)
		if err != nil {
			t.Fatal(err)
		}

		return secret
	}
	signing := func(want ...string) {
		t.Helper()

		if got, err := h.reread(e).
			OpenSecrets(h.Deliverer.seal, now); err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("signed with %q, error %v, want %q", got, err, want)
		}
	}
	second := rotate(24 * time.Hour)
	signing(second, first)

	if got := h.reread(
		e,
	); !got.PreviousSecretExpiresAt.Equal(start.Add(24*time.Hour)) ||
		got.SecretLast4 != second[len(second)-4:] {
		t.Errorf("rotated to %+v", got)
	}

	third := rotate(time.Hour) // within the overlap: the oldest is dropped
	signing(third, second)

	now = start.Add(time.Hour - 1)

	signing(third, second)

	now = start.Add(time.Hour)

	signing(third)

	fourth := rotate(0)
	signing(fourth)

	if got := h.reread(e); got.SealedPrevious != nil || !got.PreviousSecretExpiresAt.IsZero() {
		t.Errorf("without overlap the previous secret stays: %+v", got)
	}

	for _, overlap := range []time.Duration{-time.Hour, 168*time.Hour + 1} {
		_, _, err := h.RotateSecret(t.Context(), merchant, e.ID, overlap)
		wantFault(t, err, fault.Invalid, "parameter_invalid")
	}

	_, _, err := h.RotateSecret(t.Context(), stranger, e.ID, 0)
	wantFault(t, err, fault.NotFound, "resource_missing")
	signing(fourth)
}

func TestUpdateEndpoint(t *testing.T) {
	now := start
	h := newHarness(t, func(c *Config) { c.Now = func() time.Time { return now } })
	e, _ := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)
	other, _ := h.endpoint(merchant, "https://example.com/other", event.WebhookEndpointDisabled)
	h.happen(merchant, event.InvoicePaid)

	now = start.Add(time.Minute)
	update := func(u webhook.EndpointUpdate) (webhook.Endpoint, error) {
		return h.UpdateEndpoint(t.Context(), merchant, e.ID, u)
	}

	if got, err := update(
		webhook.EndpointUpdate{},
	); err != nil || got.Version != e.Version ||
		!got.UpdatedAt.Equal(start) {
		t.Errorf("an update of nothing wrote %+v, error %v", got, err)
	}

	url, text, types := "https://example.org/new", "orders", []event.Type{"*"}

	got, err := update(webhook.EndpointUpdate{URL: &url, Description: &text, Events: &types})
	if err != nil || got.URL != url || got.Description != text || !slices.Equal(got.Events, types) ||
		!got.UpdatedAt.Equal(now) ||
		got.Status != webhook.Enabled {
		t.Errorf("updated to %+v, error %v", got, err)
	}

	bad := []webhook.EndpointUpdate{
		{URL: ptr("http://example.org")},
		{Description: ptr(strings.Repeat("é", 201))},
		{Events: &[]event.Type{"invoice.paidd"}},
		{Status: ptr(webhook.Failing)},
	}
	for _, u := range bad {
		_, err := update(u)
		wantFault(t, err, fault.Invalid, "parameter_invalid")
	}

	if got, err = update(
		webhook.EndpointUpdate{Status: ptr(webhook.Disabled)},
	); err != nil ||
		got.Status != webhook.Disabled {
		t.Fatalf("disabled: %+v, error %v", got, err)
	}

	if d := h.deliveries(
		e.ID,
	); len(d) != 1 || d[0].Status != webhook.DeliveryFailed ||
		!d[0].NextAttemptAt.IsZero() {
		t.Errorf("disabling left %+v", d)
	}

	if d := h.deliveries(other.ID); len(d) != 1 || d[0].EventType != event.WebhookEndpointDisabled {
		t.Errorf("the other endpoint heard %+v", d)
	}

	if _, err = update(
		webhook.EndpointUpdate{Status: ptr(webhook.Disabled)},
	); err != nil ||
		h.events(event.WebhookEndpointDisabled) != 1 {
		t.Errorf("disabling twice: error %v, %d events", err, h.events(event.WebhookEndpointDisabled))
	}

	h.happen(merchant, event.InvoicePaid)

	if d := h.deliveries(e.ID); len(d) != 1 {
		t.Errorf("a disabled endpoint got a delivery")
	}

	if got, err = update(
		webhook.EndpointUpdate{Status: ptr(webhook.Enabled)},
	); err != nil ||
		got.Status != webhook.Enabled {
		t.Errorf("enabled: %+v, error %v", got, err)
	}

	_, err = h.UpdateEndpoint(t.Context(), stranger, e.ID, webhook.EndpointUpdate{Description: &text})
	wantFault(t, err, fault.NotFound, "resource_missing")
}

func ptr[T any](v T) *T { return &v }

func TestDeleteEndpoint(t *testing.T) {
	h := newHarness(t, nil)
	e, _ := h.endpoint(merchant, "https://example.com/hook")
	h.happen(merchant, event.InvoicePaid)
	wantFault(t, h.DeleteEndpoint(t.Context(), stranger, e.ID), fault.NotFound, "resource_missing")

	if err := h.DeleteEndpoint(t.Context(), merchant, e.ID); err != nil {
		t.Fatal(err)
	}

	d := h.deliveries(e.ID)
	if len(d) != 1 || d[0].Status != webhook.DeliveryFailed {
		t.Fatalf("deleting left %+v", d)
	}

	if _, err := h.GetDelivery(t.Context(), merchant, d[0].ID); err != nil {
		t.Errorf("an ended delivery is not readable any more: %v", err)
	}

	wantFault(t, h.DeleteEndpoint(t.Context(), merchant, e.ID), fault.NotFound, "resource_missing")
	_, err := h.ResendDelivery(t.Context(), merchant, d[0].ID)
	wantFault(t, err, fault.NotFound, "resource_missing")
}

func TestPingAndResend(t *testing.T) {
	h := newHarness(t, nil)
	e, _ := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)
	all, _ := h.endpoint(merchant, "https://example.com/all")

	ping, err := h.Test(t.Context(), merchant, e.ID)
	if err != nil || ping.Trigger != webhook.ByTest || ping.EventType != event.Ping ||
		ping.EndpointID != e.ID ||
		ping.Status != webhook.DeliveryPending {
		t.Fatalf("ping %+v, error %v", ping, err)
	}

	if stored, err := h.GetDelivery(
		t.Context(), merchant, ping.ID,
	); err != nil ||
		stored.Version != ping.Version {
		t.Errorf("stored ping %+v, error %v", stored, err)
	}

	if ev, err := h.GetEvent(
		t.Context(), merchant, ping.EventID,
	); err != nil || ev.Type != event.Ping || ev.ObjectID != e.ID ||
		ev.Sequence != 1 {
		t.Errorf("the ping's event is %+v, error %v", ev, err)
	}

	if n := len(h.deliveries("")); n != 1 {
		t.Errorf("a ping made %d deliveries", n)
	}

	again, err := h.ResendEvent(t.Context(), merchant, ping.EventID)
	if err != nil || len(again) != 1 || again[0].EndpointID != e.ID || again[0].Trigger != webhook.ByResend {
		t.Errorf("a ping was resent as %+v, error %v", again, err)
	}

	h.happen(merchant, event.InvoicePaid)

	original := h.deliveries(e.ID)[0]
	if original.Trigger != webhook.ByEvent || original.InvoiceID == "" {
		t.Errorf("the original is %+v", original)
	}

	ds, err := h.ResendEvent(t.Context(), merchant, original.EventID)
	if err != nil || len(ds) != 2 || ds[0].EndpointID == ds[1].EndpointID ||
		ds[0].EventID != original.EventID {
		t.Errorf("resent as %+v, error %v", ds, err)
	}

	one, err := h.ResendDelivery(t.Context(), merchant, original.ID)
	if err != nil || one.EndpointID != e.ID || one.EventID != original.EventID || one.ID == original.ID ||
		one.Trigger != webhook.ByResend ||
		one.Attempts != 0 {
		t.Errorf("resent as %+v, error %v", one, err)
	}

	for _, endpoint := range []webhook.Endpoint{e, all} {
		if _, err := h.UpdateEndpoint(
			t.Context(), merchant, endpoint.ID, webhook.EndpointUpdate{Status: ptr(webhook.Disabled)},
		); err != nil {
			t.Fatal(err)
		}
	}

	_, err = h.Test(t.Context(), merchant, e.ID)
	wantFault(t, err, fault.State, "webhook_endpoint_disabled")
	_, err = h.ResendDelivery(t.Context(), merchant, original.ID)
	wantFault(t, err, fault.State, "webhook_endpoint_disabled")
	_, err = h.ResendEvent(t.Context(), merchant, original.EventID)
	wantFault(t, err, fault.State, "webhook_endpoint_none")
	_, err = h.ResendEvent(t.Context(), merchant, ping.EventID)
	wantFault(t, err, fault.State, "webhook_endpoint_none")
	_, err = h.ResendEvent(t.Context(), stranger, original.EventID)
	wantFault(t, err, fault.NotFound, "resource_missing")
	_, err = h.ResendDelivery(t.Context(), stranger, original.ID)
	wantFault(t, err, fault.NotFound, "resource_missing")
	_, err = h.Test(t.Context(), stranger, e.ID)
	wantFault(t, err, fault.NotFound, "resource_missing")
}

func TestLists(t *testing.T) {
	h := newHarness(t, nil)

	e, _ := h.endpoint(merchant, "https://example.com/hook")
	for range 5 {
		h.happen(merchant, event.InvoicePaid)
	}

	var seen []string

	f := webhook.DeliveryFilter{Owner: merchant, EndpointID: e.ID, Limit: 2}

	for more := true; more; {
		var (
			page []webhook.Delivery
			err  error
		)
		if page, more, err = h.ListDeliveries(t.Context(), f); err != nil || len(page) > 2 {
			t.Fatalf("a page of %d, error %v", len(page), err)
		}

		for _, d := range page {
			seen = append(seen, d.ID)
			f.After = d.ID
		}
	}

	if len(seen) != 5 || !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("read %v", seen)
	}

	events, more, err := h.ListEvents(t.Context(), event.Filter{Owner: merchant, Limit: 4})
	if len(events) != 4 || !more || err != nil {
		t.Errorf("%d events, more %v, error %v", len(events), more, err)
	}

	endpoints, more, err := h.ListEndpoints(t.Context(), webhook.EndpointFilter{Owner: merchant})
	if len(endpoints) != 1 || more || err != nil {
		t.Errorf("%d endpoints, more %v, error %v", len(endpoints), more, err)
	}

	for _, f := range []webhook.DeliveryFilter{
		{Owner: merchant, EventID: "evt_65a0000000000000000000ff"},
		{Owner: merchant, EndpointID: "65a0000000000000000000ff"},
		{Owner: stranger, EndpointID: e.ID},
	} {
		_, _, err := h.ListDeliveries(t.Context(), f)
		wantFault(t, err, fault.NotFound, "resource_missing")
	}
}

func TestConfigMustBeWhole(t *testing.T) {
	_, err := webhook.New(webhook.Config{})
	wantFault(t, err, fault.Invalid, "config_invalid")
}

// pitfall 33: whatever is subscribed how, and however often, one event makes one delivery per
// subscribed endpoint.
func TestFanOutMakesExactlyOneDeliveryPerSubscribedEndpoint(t *testing.T) {
	types := append(event.Types(), event.Ping, event.TransactionMoved)

	rapid.Check(t, func(rt *rapid.T) {
		h := newHarness(t, nil)
		owners := []event.Owner{merchant, tester, stranger}

		var endpoints []webhook.Endpoint

		for i := range rapid.IntRange(0, 6).Draw(rt, "endpoints") {
			subscribed := rapid.SliceOfN(rapid.SampledFrom(event.Types()), 1, 4).Draw(rt, "types")
			if rapid.Bool().Draw(rt, "all") {
				subscribed = []event.Type{"*"}
			}

			e, _ := h.endpoint(
				rapid.SampledFrom(owners).Draw(rt, "owner"),
				fmt.Sprintf("https://example.com/%d", i),
				subscribed...)
			if rapid.IntRange(0, 3).Draw(rt, "disabled") == 0 {
				e.Status = webhook.Disabled
				h.db.rows.endpoints[e.ID] = e
			}

			endpoints = append(endpoints, e)
		}

		events := make([]event.Event, rapid.IntRange(1, 5).Draw(rt, "events"))
		for i := range events {
			events[i] = event.Event{
				ID:       h.db.ids.Event(),
				Owner:    rapid.SampledFrom(owners).Draw(rt, "owner"),
				Type:     rapid.SampledFrom(types).Draw(rt, "type"),
				ObjectID: "x",
			}
		}

		tx := &memoryTx{rows: h.db.rows.clone()}
		if err := h.FanOutTx(context.Background(), tx, events); err != nil {
			rt.Fatal(err)
		}

		total := 0

		for _, ev := range events {
			for _, e := range endpoints {
				want := 0
				if e.Owner == ev.Owner && e.Wants(ev.Type) && ev.Type != event.Ping &&
					ev.Type != event.TransactionMoved {
					want = 1
				}

				got := 0

				for _, d := range tx.rows.deliveries {
					if d.EventID == ev.ID && d.EndpointID == e.ID && d.Owner == ev.Owner &&
						d.EventType == ev.Type &&
						d.Trigger == webhook.ByEvent &&
						d.Status == webhook.DeliveryPending {
						got++
					}
				}

				if got != want {
					rt.Fatalf(
						"%d deliveries of %s to %v (%s), want %d",
						got, ev.Type, e.Events, e.Status, want,
					)
				}

				total += got
			}
		}

		if total != len(tx.rows.deliveries) {
			rt.Fatalf("%d deliveries, of which only %d were asked for", len(tx.rows.deliveries), total)
		}
	})
}

func TestPrune(t *testing.T) {
	now := start
	h := newHarness(
		t,
		func(c *Config) { c.Now = func() time.Time { return now }; c.Retention = 24 * time.Hour },
	)

	e, _ := h.endpoint(merchant, "https://example.com/hook")
	for range pruneBatch + 1 {
		h.happen(merchant, event.InvoicePaid)
	}

	now = now.Add(time.Hour)

	if _, err := h.UpdateEndpoint(
		t.Context(), merchant, e.ID, webhook.EndpointUpdate{Status: ptr(webhook.Disabled)},
	); err != nil {
		t.Fatal(err)
	}

	if did, err := h.Prune(t.Context()); did || err != nil || len(h.deliveries("")) != pruneBatch+1 {
		t.Fatalf("pruned before its time: %v, error %v", did, err)
	}

	now = start.Add(24*time.Hour + 1)

	if did, err := h.Prune(t.Context()); !did || err != nil || len(h.deliveries("")) != 1 {
		t.Errorf("the first batch: did %v, error %v, %d left", did, err, len(h.deliveries("")))
	}

	if did, err := h.Prune(
		t.Context(),
	); did || err != nil || len(h.deliveries("")) != 0 ||
		h.events(event.InvoicePaid) != 0 {
		t.Errorf("the second batch: did %v, error %v, %d left", did, err, len(h.deliveries("")))
	}

	if h.events(event.WebhookEndpointDisabled) != 1 {
		t.Error("a young event was pruned")
	}
}

// What the sender sends, the receiver takes: over a real connection, with a rotation under way.
func TestSenderAndReceiverAgree(t *testing.T) {
	h := newHarness(t, nil)

	var x http.Handler

	url := serve(t, func(w http.ResponseWriter, q *http.Request) { x.ServeHTTP(w, q) }).URL
	e, first := h.endpoint(tester, url)

	_, second, err := h.RotateSecret(t.Context(), tester, e.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	for _, secret := range []string{first, second} {
		handled := 0

		var err error

		x, err = webhook.NewReceiver(webhook.ReceiverConfig{
			Secrets: []string{secret},
			Now:     h.Deliverer.stamp,
			Log:     slog.New(slog.DiscardHandler),
			Handle: func(_ context.Context, n webhook.Notification) error {
				if n.Type == "ping" {
					handled++
				}

				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}

		if _, err := h.Test(t.Context(), tester, e.ID); err != nil {
			t.Fatal(err)
		}

		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Fatalf("did %v, error %v", did, err)
		}

		if handled != 1 {
			t.Errorf("%d pings arrived", handled)
		}
	}
}
