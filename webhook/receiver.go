package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// This file holds the receiving end, for merchants who write Go.

// Notification is an event as a merchant receives it: the envelope that is the body of a delivery.
type Notification struct {
	// ID is the event's id: the same in every delivery of it, however often it is sent.
	ID         string     `json:"id"`
	Type       event.Type `json:"type"`
	APIVersion string     `json:"api_version"`
	CreatedAt  time.Time  `json:"created_at"`
	Livemode   bool       `json:"livemode"`
	// Sequence counts up per object: of two events of one object, the higher one is the later, in whatever
	// order they arrive.
	Sequence int64            `json:"sequence"`
	Data     NotificationData `json:"data"`
	Request  event.Request    `json:"request"`
}

// NotificationData is the object of a notification.
type NotificationData struct {
	// Object is the object as it was when the event was made, in the form of the API.
	Object json.RawMessage `json:"object"`
	// PreviousAttributes are the earlier values of changed attributes; may be absent.
	PreviousAttributes json.RawMessage `json:"previous_attributes,omitempty"`
}

// Seen stores the ids of handled events, so that an event that is delivered twice, or replayed, is handled
// once.
type Seen interface {
	// Has reports whether the event was added before.
	Has(ctx context.Context, eventID string) (bool, error)
	// Add stores the id of a handled event.
	Add(ctx context.Context, eventID string) error
}

// ReceiverConfig configures a Receiver. Secrets and Handle are required.
type ReceiverConfig struct {
	// Secrets are the endpoint's signing secrets: one, or two while a rotation is under way.
	Secrets []string
	// Handle is called once per event, after its signature was verified. An error makes the sender try again
	// later, so uninteresting and unknown types must return nil. It has a few seconds: the sender gives up
	// after 15. If processes do not share a Seen, each of them may be called for the same event.
	Handle func(context.Context, Notification) error
	// Seen defaults to the last 10,000 events, in memory.
	Seen Seen
	// MaxBody is the largest body in bytes that is read. Defaults to 1 MiB.
	MaxBody int64
	// Now defaults to time.Now.
	Now func() time.Time
	// Log receives failures. Defaults to slog.Default().
	Log *slog.Logger
}

// receiver is the handler that NewReceiver returns.
type receiver struct {
	// c returns the configuration. fmt would print the secrets of a field, but not the result of a function.
	c func() *ReceiverConfig

	mu      sync.Mutex
	current map[string]bool // events that are being handled
}

// NewReceiver returns an http.Handler for deliveries: it verifies them, drops duplicates, and calls Handle.
//
// It answers 204 when the event was handled, now or before; 401 to a delivery that does not verify; 400, 405
// or 413 to a request that is not a delivery; 409 while the same event is being handled; 500 when Handle
// failed and 503 when Seen did. The sender tries again after any status but 2xx.
//
// Errors: fault.Invalid without Handle or without a secret, and for a blank one.
func NewReceiver(c ReceiverConfig) (http.Handler, error) {
	if c.Handle == nil {
		return nil, fault.New(fault.Invalid, "config_invalid", "webhook.ReceiverConfig needs Handle")
	}

	if len(c.Secrets) == 0 {
		return nil, noSecret()
	}

	for _, secret := range c.Secrets {
		if strings.TrimSpace(secret) == "" {
			return nil, noSecret()
		}
	}

	if c.Seen == nil {
		c.Seen = newRecent(10_000)
	}

	if c.MaxBody <= 0 {
		c.MaxBody = 1 << 20
	}

	if c.Now == nil {
		c.Now = time.Now
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}

	return &receiver{c: func() *ReceiverConfig { return &c }, current: make(map[string]bool)}, nil
}

// ServeHTTP handles one delivery.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	status, err := r.receive(w, q)
	switch {
	case err == nil:
		w.WriteHeader(status)
		return
	case status >= 500:
		r.c().Log.ErrorContext(q.Context(), "a webhook was not handled", "status", status, "error", err)
		// The cause is not shown: the sender stores the response.
		http.Error(w, http.StatusText(status), status)
	default:
		http.Error(w, err.Error(), status)
	}
}

func (r *receiver) receive(w http.ResponseWriter, q *http.Request) (status int, err error) {
	if q.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, errors.New("webhooks are delivered by POST")
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, r.c().MaxBody))
	if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig {
		return http.StatusRequestEntityTooLarge, errors.New("the body is too large")
	}

	if err != nil {
		return http.StatusBadRequest, errors.New("the body cannot be read")
	}

	headers := q.Header.Values(SignatureHeader)
	if len(headers) > 1 {
		return http.StatusUnauthorized, errors.New("there are several signature headers")
	}

	if err := VerifyAt(body, q.Header.Get(SignatureHeader), r.c().Now(), r.c().Secrets...); err != nil {
		return http.StatusUnauthorized, err
	}

	var n Notification
	if err := json.Unmarshal(body, &n); err != nil || n.ID == "" || n.Type == "" {
		return http.StatusBadRequest, errors.New("the body is not an event")
	}

	if !r.begin(n.ID) {
		w.Header().Set("Retry-After", "5")
		return http.StatusConflict, errors.New("this event is being handled")
	}
	defer r.end(n.ID)

	return r.handle(q.Context(), n)
}

func (r *receiver) handle(ctx context.Context, n Notification) (status int, err error) {
	seen, err := r.c().Seen.Has(ctx, n.ID)
	if err != nil {
		return http.StatusServiceUnavailable, err
	}

	if seen {
		return http.StatusNoContent, nil
	}

	if err := r.c().Handle(ctx, n); err != nil {
		return http.StatusInternalServerError, err
	}

	if err := r.c().Seen.Add(ctx, n.ID); err != nil {
		// It was handled. A retry would have it handled twice.
		r.c().Log.ErrorContext(ctx, "a webhook was handled but not remembered", "event", n.ID, "error", err)
	}

	return http.StatusNoContent, nil
}

// begin marks the event as being handled, and reports false if it already is. A concurrent second delivery
// must not be answered with success: the first may yet fail.
func (r *receiver) begin(eventID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.current[eventID] {
		return false
	}

	r.current[eventID] = true

	return true
}

// end removes the mark of begin.
func (r *receiver) end(eventID string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	delete(r.current, eventID)
}

// recent is an in-memory Seen that drops the oldest event when it is full. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	ids   map[string]bool
	order []string // a ring buffer
	next  int
}

// newRecent returns a recent for up to size events, at least 1.
func newRecent(size int) *recent {
	size = max(size, 1)
	return &recent{ids: make(map[string]bool), order: make([]string, size)}
}

// Has reports whether the event is stored.
func (m *recent) Has(_ context.Context, eventID string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.ids[eventID], nil
}

// Add stores an event id.
func (m *recent) Add(_ context.Context, eventID string) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.ids[eventID] {
		return nil
	}

	delete(m.ids, m.order[m.next])
	m.order[m.next] = eventID
	m.ids[eventID] = true
	m.next = (m.next + 1) % len(m.order)

	return nil
}
