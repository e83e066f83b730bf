package checkout

// Live updates: server-sent events from the engine's stream of changes.

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// A stream is a sequence of short watches. Each begins by reading the invoice anew, which shows
// what time alone has changed (a quote that ran out, a network that stands still), and ends with a
// comment that keeps proxies from hanging up. So it needs no goroutine and no timer of its own.
const (
	watchTimeout = 20 * time.Second
	// streamTimeout is when a stream ends; the browser opens another.
	streamTimeout = time.Hour
	// writeTimeout bounds how long a client may take to take an event.
	writeTimeout = 15 * time.Second
	// settle is what is added to a moment at which something changes, to be surely after it.
	changeMargin = 50 * time.Millisecond
)

// events streams the state: an event "state" with the JSON of state.json at first and whenever its
// revision changes.
func (r *request) events() error {
	if !r.p.streams.acquire(r.client) {
		e := fault.New(fault.Limited, "rate_limited", "too many event streams are open from this address")
		e.RetryAfter = watchTimeout

		return e
	}
	defer r.p.streams.release(r.client)

	s := stream{r: r, out: http.NewResponseController(r.w)}
	if on, err := s.begin(); !on {
		return err
	}

	ctx, cancel := context.WithTimeout(r.Context(), streamTimeout)
	defer cancel()

	for ctx.Err() == nil {
		if !s.watch(ctx) || ctx.Err() == nil && !s.write(": \n\n") {
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

// begin sends the head and the first state; false when there is nothing to go on with. Its
// variables, and those of what it calls, are gone from the stack by the time a stream waits: there
// are many streams, and they wait for long.
func (s *stream) begin() (bool, error) {
	r := s.r

	first, err := r.p.read(r.Context(), r.id)
	if err != nil {
		return false, err
	}

	h := r.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep the events back

	return r.Method != http.MethodHead && s.write("retry: 3000\n") && s.state(first), nil
}

// watch passes on changes for a while; false when the stream is over.
func (s *stream) watch(ctx context.Context) bool {
	p := s.r.p

	wait := watchTimeout
	if now := p.backend.Now(); s.next.After(now) {
		wait = min(wait, s.next.Sub(now)+changeMargin)
	}

	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()

	for inv, err := range p.backend.Watch(ctx, s.r.id) {
		var state State

		if err == nil {
			var f snapshot
			if f, err = p.loadSnapshot(ctx, inv); err == nil {
				state = stateOf(f)
			}
		}

		switch {
		case ctx.Err() != nil:
			return true
		case err != nil:
			// The client comes back; if the invoice is gone, it is told then.
			p.log.WarnContext(ctx, "a checkout stream ended early", "invoice", s.r.id, "error", err)
			return false
		case !s.state(state):
			return false
		}
	}

	return true
}

// state sends a state unless the client has it; false when the client is gone.
func (s *stream) state(state State) bool {
	s.next = nextChange(state, s.r.p.backend.Now())
	if state.Revision == s.sent {
		return true
	}

	b, err := json.Marshal(state)
	if err != nil {
		s.r.p.log.Error("a checkout state cannot be written", "invoice", state.ID, "error", err)
		return false
	}

	s.sent = state.Revision

	return s.write("event: state\nid: " + state.Revision + "\ndata: " + string(b) + "\n\n")
}

func (s *stream) write(text string) bool {
	// Not every ResponseWriter has deadlines; where it has none, the server's own hold.
	_ = s.out.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.r.w.Write([]byte(text)); err != nil {
		return false
	}

	return s.out.Flush() == nil
}

// nextChange is when time alone will change the state next; zero when never.
func nextChange(s State, now time.Time) time.Time {
	var next time.Time

	texts := []string{s.ExpiresAt, s.SelectBefore}
	if s.Payment != nil {
		texts = append(texts, s.Payment.QuoteExpiresAt)
	}

	for _, text := range texts {
		if t, err := time.Parse(
			time.RFC3339Nano, text,
		); err == nil && t.After(now) &&
			(next.IsZero() || t.Before(next)) {
			next = t
		}
	}

	return next
}
