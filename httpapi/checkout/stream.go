package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/limit"
)

// A stream is a sequence of short watches. Each starts with a fresh read, which shows changes that only time
// makes: an expired quote, a stalled network. Each ends with a heartbeat, which keeps proxies from closing
// the connection, and shows the page that events still arrive. So a stream needs no goroutine and no timer.
const (
	watchTimeout = 20 * time.Second
	// streamTimeout is how long a stream lasts; then the browser opens another.
	streamTimeout = time.Hour
	// writeTimeout is how long a client may take to read an event.
	writeTimeout = 15 * time.Second
	// changeMargin is added to the time of the next change, so that the read is after it.
	changeMargin = 50 * time.Millisecond
)

// heartbeat is an event, because scripts do not see comments. An event without data would not be dispatched.
const heartbeat = "event: heartbeat\ndata: {}\n\n"

// events streams the state as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). An event "state" has the JSON of
// state.json, at first and whenever its revision changes. An event "heartbeat" comes at least every 20
// seconds while the stream lives.
func (r *request) events() error { // spec D10.8
	if !r.p.streams.acquire(r.client) {
		limited := fault.New(
			fault.Limited, "rate_limited", "too many event streams are open from this address",
		)
		limited.RetryAfter = watchTimeout

		return limited
	}
	defer r.p.streams.release(r.client)

	s := stream{r: r, out: http.NewResponseController(r.w)}
	if on, err := s.start(); !on {
		return err
	}

	ctx, cancel := context.WithTimeout(r.Context(), streamTimeout)
	defer cancel()

	for ctx.Err() == nil {
		if !s.watch(ctx) || ctx.Err() == nil && !s.write(heartbeat) {
			return nil
		}
	}

	return nil
}

// stream is one client's event stream.
type stream struct {
	r    *request
	out  *http.ResponseController
	sent string // the revision that the client has
	next time.Time
}

// start sends the headers and the first state; false when the stream is over. It is a separate function so
// that its stack is free before the stream waits: there are many streams.
func (s *stream) start() (bool, error) {
	r := s.r

	first, err := r.read()
	if err != nil {
		return false, err
	}

	limit.EndBodyDeadline(r.w) // a stream lives longer than the server's ReadTimeout

	h := r.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would buffer the events

	return r.Method != http.MethodHead && s.write("retry: 3000\n") && s.sendState(first), nil
}

// watch sends changes for up to watchTimeout; false when the stream is over.
func (s *stream) watch(ctx context.Context) bool {
	r, p := s.r, s.r.p

	wait := watchTimeout
	if now := p.backend.Now(); s.next.After(now) {
		wait = min(wait, s.next.Sub(now)+changeMargin)
	}

	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()

	for inv, err := range p.backend.Watch(ctx, r.id) {
		var state pageState

		if err == nil {
			err = r.checkLink(inv) // it may have been renewed meanwhile
		}

		if err == nil {
			var f snapshot
			if f, err = p.loadSnapshot(ctx, inv); err == nil {
				state = stateOf(f)
			}
		}

		switch {
		case ctx.Err() != nil:
			return true
		case errors.Is(err, fault.NotFound):
			return false
		case err != nil:
			// The client reconnects; the next answer shows that the invoice is missing.
			p.log.WarnContext(ctx, "checkout stream failed", "invoice", r.id, "error", err)
			return false
		case !s.sendState(state):
			return false
		}
	}

	return true
}

// sendState sends a state unless the client has its revision; false when the client is gone.
func (s *stream) sendState(state pageState) bool {
	s.next = nextChange(state, s.r.p.backend.Now())
	if state.Revision == s.sent {
		return true
	}

	b, err := json.Marshal(state)
	if err != nil {
		s.r.p.log.Error("checkout state not encoded", "invoice", state.ID, "error", err)
		return false
	}

	s.sent = state.Revision

	return s.write("event: state\nid: " + state.Revision + "\ndata: " + string(b) + "\n\n")
}

// write sends a text at once; false when the client is gone.
func (s *stream) write(text string) bool {
	// A ResponseWriter without deadlines keeps the server's.
	_ = s.out.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.r.w.Write([]byte(text)); err != nil {
		return false
	}

	return s.out.Flush() == nil
}

// nextChange returns when time alone next changes the state; zero for never.
func nextChange(s pageState, now time.Time) time.Time {
	var next time.Time

	texts := []string{s.ExpiresAt, s.SelectBefore}
	if s.Payment != nil {
		texts = append(texts, s.Payment.QuoteExpiresAt)
	}

	for _, text := range texts {
		deadline, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || !deadline.After(now) {
			continue
		}

		if next.IsZero() || deadline.Before(next) {
			next = deadline
		}
	}

	return next
}
