package webhook_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Every type of the catalogue happens by what merchants, payers and the network do, in fake time
// over two processes. The host's OnEvent and the merchant's endpoint see the same events: the same
// bytes, and of each object the same sequence without a gap.
func TestEveryEventType(t *testing.T) {
	m := newMerchant(t)
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, m)
		s.play()
		s.compare()
	})
}

// merchant is a web server with an endpoint for all events, one that always fails and one that is
// gone. It lives outside the bubble of fake time, and closes its connections, because an open one
// would keep time from passing in there.
type merchant struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][]byte // by event id
	errs   []error
	secret string
}

func newMerchant(t *testing.T) *merchant {
	m := &merchant{bodies: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/all", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)

		m.mu.Lock()
		defer m.mu.Unlock()

		if err == nil {
			err = verifyThen(body, r.Header.Get(webhook.SignatureHeader), m.secret)
		}

		if err != nil {
			m.errs = append(m.errs, err)
		}

		id := r.Header.Get(webhook.EventIDHeader)
		if before, again := m.bodies[id]; again && !bytes.Equal(before, body) {
			m.errs = append(m.errs, fmt.Errorf("event %s came with two bodies", id))
		}

		m.bodies[id] = body
	})
	mux.HandleFunc(
		"/broken",
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	)
	mux.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	m.Server = httptest.NewUnstartedServer(mux)
	m.Config.SetKeepAlivesEnabled(false)
	m.Start()
	t.Cleanup(m.Close)

	return m
}

// verifyThen verifies a body at the time of its signature: the sender lives in another time.
func verifyThen(body []byte, header, secret string) error {
	var signed int64
	if _, err := fmt.Sscanf(header, "t=%d", &signed); err != nil {
		return fmt.Errorf("the signature %q has no time: %w", header, err)
	}

	return webhook.VerifyAt(body, header, time.Unix(signed, 0), secret)
}

// compare holds what OnEvent saw, what is stored and what the endpoint got against each other, and
// the catalogue.
func (s *scenario) compare() {
	types := map[event.Type]int{}
	hooked := 0

	for object, of := range s.seen {
		for i, ev := range of {
			hooked++

			types[ev.Type]++
			if ev.Sequence != int64(i+1) {
				s.t.Errorf("OnEvent saw event %d of %s under sequence %d", i+1, object, ev.Sequence)
			}

			stored, err := s.engine.Webhooks.GetEvent(s.t.Context(), s.owner, ev.ID)
			s.must(err)

			if stored.Sequence != ev.Sequence || stored.ObjectID != object || stored.Type != ev.Type ||
				!bytes.Equal(stored.Envelope, ev.Envelope) {
				s.t.Errorf("OnEvent saw %s %s, stored is %+v", ev.Type, ev.ID, stored)
			}
		}
	}

	s.merchant.mu.Lock()
	defer s.merchant.mu.Unlock()

	for _, err := range s.merchant.errs {
		s.t.Error(err)
	}

	if len(s.merchant.bodies) != hooked {
		s.t.Errorf("OnEvent saw %d events, the endpoint %d", hooked, len(s.merchant.bodies))
	}

	for object, of := range s.seen {
		for _, ev := range of {
			if !bytes.Equal(s.merchant.bodies[ev.ID], ev.Envelope) {
				s.t.Errorf("%s of %s arrived as %q", ev.Type, object, s.merchant.bodies[ev.ID])
			}
		}
	}

	catalogue := append(event.Types(), event.Ping)
	for _, typ := range catalogue {
		if types[typ] == 0 {
			s.t.Errorf("%s did not happen", typ)
		}
	}

	for typ := range types {
		if !slices.Contains(catalogue, typ) {
			s.t.Errorf("%s is not in the catalogue", typ)
		}
	}

	var list strings.Builder
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		fmt.Fprintf(&list, "\n%4d  %s", types[typ], typ)
	}

	s.t.Logf(
		"%d events about %d objects, %d of the %d types:%s",
		hooked, len(s.seen), len(types), len(catalogue), list.String(),
	)
}
