package simulation

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file plays many webhook receivers at once, which the processes of a plan do not: those send one delivery after
// the other, so that a seed always does the same. A flood is a service of its own, in the time of the bubble.

// ruleDelivered is what others wait for while receivers hang.
const ruleDelivered = "a receiver that hangs delays nobody else's webhooks"

// Of a flood: the deliveries that are under way at once, how often an event comes, and how long a receiver that
// answers may wait for its own, live and in test mode.
const (
	floodSlots = 8
	floodPause = 4 * time.Second
	floodTurns = 8
	liveBound  = 3 * time.Second
	testBound  = time.Minute
)

// floodHanging is how many accounts hang at most, and floodTests how many of them leave a turn to others of test mode
// within testBound: of more, claims run out before their turn.
const (
	floodHanging = 12
	floodTests   = 5
)

// flood is a service whose receivers mostly hang.
type flood struct {
	engine    *payments.Engine
	endpoints []webhook.Endpoint

	mu sync.Mutex
	// answered is when a receiver that answers last got an event, by URL.
	answered map[string]time.Time
}

// flood has many endpoints of test accounts hang, while one live account and one of the test accounts answer.
func (w *harness) flood(op Op) {
	accounts := 1 + op.A%floodHanging
	f := newFlood(w, op)

	for i := range accounts {
		f.addAccount(w.ctx, fmt.Sprintf("hangs-%d", i), false)
	}

	live := f.addAccount(w.ctx, "live", true)
	test := f.addAccount(w.ctx, "test", false)

	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)

	go func() { ended <- internal.Of(f.engine).Deliverer.Run(ctx) }()

	for range floodTurns {
		for i := range f.endpoints {
			f.happen(w.ctx, i, op.C>>8%4 == 0)
		}

		time.Sleep(floodPause)
	}

	began := time.Now()

	f.happen(w.ctx, live, false)
	f.happen(w.ctx, test, false)
	time.Sleep(liveBound)
	f.check(w, live, began, liveBound)

	if time.Sleep(testBound - liveBound); accounts <= floodTests {
		f.check(w, test, began, testBound)
	}

	stop()
	must(<-ended)
}

// newFlood returns a service without accounts.
func newFlood(w *harness, op Op) *flood {
	f := &flood{answered: map[string]time.Time{}}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{sim.New(sim.Config{Clock: time.Now, Seed: op.C})},
		Signer:    w.signer,
		Rates:     w.feed,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Log:       w.log,
		Now:       time.Now,
		Entropy:   newEntropy(op.C),
	})
	must(err)

	internal.Of(engine).Deliverer.Simulate(f, floodSlots)
	f.engine = engine

	return f
}

// addAccount adds an account with an endpoint, and returns its index.
func (f *flood) addAccount(ctx context.Context, name string, live bool) int {
	created, err := f.engine.Accounts.CreateAccount(ctx, account.Settings{Name: name})
	must(err)

	e, _, err := f.engine.Webhooks.CreateEndpoint(ctx, webhook.EndpointParams{
		Owner:  event.Owner{AccountID: created.ID, Livemode: live},
		URL:    "https://" + name + ".example/hook",
		Events: []event.Type{"*"},
	})
	must(err)

	f.endpoints = append(f.endpoints, e)

	return len(f.endpoints) - 1
}

// happen makes an event for the account of an endpoint, or several.
func (f *flood) happen(ctx context.Context, i int, several bool) {
	n := 1
	if several {
		n = 3
	}

	for range n {
		e := &f.endpoints[i]
		e.Sequence++

		must(internal.Of(f.engine).Update(ctx, func(ctx context.Context, tx internal.Tx) error {
			return tx.AppendEvents(ctx, event.Event{
				Owner:    e.Owner,
				Type:     event.WebhookEndpointFailing,
				ObjectID: e.ID,
				Sequence: e.Sequence,
				Payload:  *e,
			})
		}))
	}
}

// check checks that an account that answers got its last event.
func (f *flood) check(w *harness, i int, began time.Time, bound time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()

	e := f.endpoints[i]
	if at, got := f.answered[e.URL]; !got || at.Before(began) {
		w.oracle.violate(
			ruleDelivered, "an event for %s was not delivered within %s, beside %d others",
			e.URL, bound, len(f.endpoints)-1,
		)
	}
}

// RoundTrip delivers a webhook; most receivers do not answer until the request is given up.
func (f *flood) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.URL.Host {
	case "live.example", "test.example":
		f.mu.Lock()
		defer f.mu.Unlock()

		f.answered[request.URL.String()] = time.Now()

		return answer(request, http.StatusOK, nil), nil
	}

	<-request.Context().Done()

	return nil, request.Context().Err()
}
