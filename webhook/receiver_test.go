package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

const paid = `{"id":"evt_1","type":"invoice.paid","api_version":"v1",` +
	`"created_at":"2026-11-20T12:00:00.000Z","livemode":true,"sequence":3,` +
	`"data":{"object":{"id":"inv"},"previous_attributes":{"status":"pending"}},"request":{"id":"req_1"}}`

type till struct {
	http.Handler
	handled []Notification
	refuse  error
	log     bytes.Buffer
}

func newTill(t *testing.T, change func(*ReceiverConfig)) *till {
	t.Helper()

	x := &till{}

	c := ReceiverConfig{
		Secrets: []string{secretA},
		Now:     func() time.Time { return start },
		Log:     slog.New(slog.NewTextHandler(&x.log, nil)),
		Handle: func(_ context.Context, n Notification) error {
			if x.refuse == nil {
				x.handled = append(x.handled, n)
			}

			return x.refuse
		},
	}
	if change != nil {
		change(&c)
	}

	var err error
	if x.Handler, err = NewReceiver(c); err != nil {
		t.Fatal(err)
	}

	return x
}

func (x *till) post(body, header string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
	if header != "" {
		q.Header.Set(SignatureHeader, header)
	}

	w := httptest.NewRecorder()
	x.ServeHTTP(w, q)

	return w
}

func TestReceiverHandlesAnEventOnce(t *testing.T) {
	x := newTill(t, nil)
	for range 3 { // pitfall 25: webhooks are repeated
		if w := x.post(paid, Sign([]byte(paid), start, secretA)); w.Code != http.StatusNoContent {
			t.Fatalf("answered %d %s", w.Code, w.Body)
		}
	}

	if len(x.handled) != 1 {
		t.Fatalf("handled %d times", len(x.handled))
	}

	n := x.handled[0]
	if n.ID != "evt_1" || n.Type != "invoice.paid" || n.APIVersion != "v1" || !n.CreatedAt.Equal(start) ||
		!n.Livemode || n.Sequence != 3 ||
		string(n.Data.Object) != `{"id":"inv"}` ||
		string(n.Data.PreviousAttributes) != `{"status":"pending"}` ||
		n.Request.ID != "req_1" {
		t.Errorf("handled %+v", n)
	}
}

func TestReceiverRefuses(t *testing.T) {
	x := newTill(t, func(c *ReceiverConfig) { c.MaxBody = 1000 })
	long := `{"id":"` + strings.Repeat("x", 1000) + `","type":"a.b"}`

	sign := func(body string) string { return Sign([]byte(body), start, secretA) }
	for _, c := range []struct {
		name, body, header string
		want               int
	}{
		{"no signature", paid, "", 401},
		{"a signature by somebody else", paid, Sign([]byte(paid), start, secretB), 401},
		{"a signature that is old", paid, Sign([]byte(paid), start.Add(-time.Hour), secretA), 401},
		{"another body", paid + " ", sign(paid), 401},
		{"no JSON", "hello", sign("hello"), 400},
		{"no event", "{}", sign("{}"), 400},
		{"an event without type", `{"id":"evt_1"}`, sign(`{"id":"evt_1"}`), 400},
		{"a body that is too long", long, sign(long), 413},
	} {
		if w := x.post(c.body, c.header); w.Code != c.want {
			t.Errorf("%s: answered %d %s, want %d", c.name, w.Code, w.Body, c.want)
		}
	}

	w := httptest.NewRecorder()
	x.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/hook", nil))

	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: answered %d", w.Code)
	}

	q := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(paid))
	q.Header[SignatureHeader] = []string{sign(paid), sign(paid)}

	w = httptest.NewRecorder()
	if x.ServeHTTP(w, q); w.Code != 401 {
		t.Errorf("two headers: answered %d", w.Code)
	}

	q = httptest.NewRequest(http.MethodPost, "/hook", io.MultiReader(strings.NewReader("{"), brokenReader{}))

	w = httptest.NewRecorder()
	if x.ServeHTTP(w, q); w.Code != 400 {
		t.Errorf("a body that breaks off: answered %d", w.Code)
	}

	if len(x.handled) != 0 {
		t.Errorf("handled %+v", x.handled)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReceiverAcceptsBothSecretsDuringARotation(t *testing.T) {
	x := newTill(t, func(c *ReceiverConfig) { c.Secrets = []string{secretB, secretA} })

	for i, secret := range []string{secretA, secretB} {
		body := fmt.Sprintf(`{"id":"evt_%d","type":"ping"}`, i)
		if w := x.post(body, Sign([]byte(body), start, secret)); w.Code != 204 {
			t.Errorf("answered %d %s", w.Code, w.Body)
		}
	}
}

func TestReceiverAsksAgainWhenHandlingFails(t *testing.T) {
	x := newTill(t, nil)
	x.refuse = errors.New("database password hunter2 was refused")
	header := Sign([]byte(paid), start, secretA)

	w := x.post(paid, header)
	if w.Code != 500 || strings.Contains(w.Body.String(), "hunter2") ||
		!strings.Contains(x.log.String(), "hunter2") {
		t.Errorf("answered %d %q, logged %q", w.Code, w.Body, &x.log)
	}

	x.refuse = nil
	if w := x.post(paid, header); w.Code != 204 || len(x.handled) != 1 {
		t.Errorf("the next time: answered %d, handled %d times", w.Code, len(x.handled))
	}
}

func TestReceiverDoesNotPromiseWhatIsUnderWay(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan error)
	x := newTill(t, func(c *ReceiverConfig) {
		c.Handle = func(context.Context, Notification) error { close(begun); return <-finish }
	})
	header := Sign([]byte(paid), start, secretA)

	first := make(chan int)
	go func() { first <- x.post(paid, header).Code }()

	<-begun

	if w := x.post(paid, header); w.Code != 409 || w.Header().Get("Retry-After") == "" {
		t.Errorf("the second was answered %d", w.Code)
	}

	finish <- nil

	if code := <-first; code != 204 {
		t.Errorf("the first was answered %d", code)
	}

	if w := x.post(paid, header); w.Code != 204 {
		t.Errorf("the third was answered %d", w.Code)
	}
}

func TestReceiverLetsGoOfAnEventWhenItsHandlerPanics(t *testing.T) {
	panics := true
	x := newTill(t, func(c *ReceiverConfig) {
		c.Handle = func(context.Context, Notification) error {
			if panics {
				panic("oops")
			}

			return nil
		}
	})
	header := Sign([]byte(paid), start, secretA)

	func() {
		defer func() { _ = recover() }()

		x.post(paid, header)
	}()

	panics = false

	if w := x.post(paid, header); w.Code != 204 {
		t.Errorf("answered %d", w.Code)
	}
}

type brokenSeen struct{ has, add error }

func (s brokenSeen) Has(context.Context, string) (bool, error) { return false, s.has }
func (s brokenSeen) Add(context.Context, string) error         { return s.add }

func TestReceiverWithoutMemory(t *testing.T) {
	header := Sign([]byte(paid), start, secretA)

	x := newTill(t, func(c *ReceiverConfig) { c.Seen = brokenSeen{has: errors.New("down")} })
	if w := x.post(paid, header); w.Code != 503 || len(x.handled) != 0 {
		t.Errorf("answered %d, handled %d times", w.Code, len(x.handled))
	}

	x = newTill(t, func(c *ReceiverConfig) { c.Seen = brokenSeen{add: errors.New("full")} })
	if w := x.post(
		paid, header,
	); w.Code != 204 || len(x.handled) != 1 ||
		!strings.Contains(x.log.String(), "full") {
		t.Errorf("answered %d, handled %d times, logged %q", w.Code, len(x.handled), &x.log)
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	m := newRecent(3)
	for _, id := range []string{"a", "b", "a", "c", "d", "e"} {
		if err := m.Add(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}

	for id, want := range map[string]bool{"a": false, "b": false, "c": true, "d": true, "e": true, "": false} {
		if has, err := m.Has(t.Context(), id); has != want || err != nil {
			t.Errorf("%q: %v, error %v", id, has, err)
		}
	}

	if len(m.ids) != 3 {
		t.Errorf("%d events are remembered", len(m.ids))
	}
}

func TestReceiverConfigMustBeWhole(t *testing.T) {
	handle := func(context.Context, Notification) error { return nil }
	_, err := NewReceiver(ReceiverConfig{Secrets: []string{secretA}})
	wantFault(t, err, fault.Invalid, "config_invalid")
	_, err = NewReceiver(ReceiverConfig{Handle: handle})
	wantFault(t, err, fault.Invalid, "secret_missing")

	for _, blank := range []string{"", " ", "\t\n"} {
		_, err = NewReceiver(ReceiverConfig{Handle: handle, Secrets: []string{blank}})
		wantFault(t, err, fault.Invalid, "secret_missing")
	}
}
