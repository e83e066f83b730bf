package failover_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

var gone = errors.New("gone")

// A transaction goes to every node. The first acceptance is enough, and a refusal counts where all refuse alike.
func TestTransactionsAreSentToEveryNode(t *testing.T) {
	poor := fault.New(fault.Invalid, "chain:insufficient_funds", "too little is there")

	bad := fault.New(fault.Invalid, "transaction_malformed", "no signature")
	for name, c := range map[string]struct {
		answers map[string]error // by node; nil accepts
		want    error
	}{
		"all accept":                    {nil, nil},
		"one accepts, two refuse":       {map[string]error{"a": poor, "b": poor}, nil},
		"one accepts, two are down":     {map[string]error{"a": gone, "c": gone}, nil},
		"all refuse":                    {map[string]error{"a": poor, "b": poor, "c": poor}, poor},
		"all refuse, not for one cause": {map[string]error{"a": poor, "b": bad, "c": poor}, fault.Unavailable},
		"two refuse, one is down":       {map[string]error{"a": poor, "b": gone, "c": poor}, fault.Unavailable},
		"all are down":                  {map[string]error{"a": gone, "b": gone, "c": gone}, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var (
					mu   sync.Mutex
					sent []string
				)

				err := newSet(false).Send(t.Context(), 1, func(_ context.Context, e *endpoint) error {
					mu.Lock()
					defer mu.Unlock()

					sent = append(sent, e.Host)

					if errors.Is(c.answers[e.Host], gone) {
						return &failover.Failure{Host: e.Host, What: "down"}
					}

					return c.answers[e.Host]
				})

				if slices.Sort(sent); !slices.Equal(sent, []string{"a", "b", "c"}) {
					t.Errorf("it was sent to %v", sent)
				}

				if !errors.Is(err, c.want) || c.want == nil && err != nil ||
					errors.Is(c.want, fault.Unavailable) && errors.Is(err, fault.Invalid) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}

// A node that hangs holds up an answer by two seconds, and nothing is left of the sending then.
func TestSendingWaitsForNoSlowNode(t *testing.T) {
	refusal := fault.New(fault.Invalid, "transaction_malformed", "no signature")

	for name, c := range map[string]struct{ answer, want error }{
		"accepted": {nil, nil},
		"refused":  {refusal, fault.Unavailable}, // the slow one may have taken it
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()

				err := newSet(false).Send(t.Context(), 1, func(ctx context.Context, e *endpoint) error {
					if e.Host == "a" {
						<-ctx.Done()
						return ctx.Err()
					}

					return c.answer
				})
				if !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, c.want)
				}

				if waited := time.Since(began); waited != 2*time.Second {
					t.Errorf("it took %s", waited)
				}
			})
		})
	}
}

// While no node answers it is sent again, and not once the caller has gone.
func TestSendingIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tries := newSet(true), 0
		s.Nodes = s.Nodes[:1]

		err := s.Send(t.Context(), 3, func(context.Context, *endpoint) error {
			if tries++; tries < 3 {
				return &failover.Failure{Host: "a", What: "down"}
			}

			return nil
		})
		if err != nil || tries != 3 {
			t.Errorf("after %d tries: %v", tries, err)
		}

		ctx, cancel := context.WithCancel(t.Context())

		err = newSet(false).Send(ctx, 3, func(ctx context.Context, _ *endpoint) error {
			cancel()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, fault.Unavailable) {
			t.Errorf("canceled: %v", err)
		}
	})
}

// Where answers depend on one node's pool, one that accepted is asked first from then on.
func TestNodeThatAcceptedIsPreferred(t *testing.T) {
	s := newSet(true)

	err := s.Send(t.Context(), 1, func(_ context.Context, e *endpoint) error {
		if e.Host == "c" {
			return nil
		}

		return &failover.Failure{Host: e.Host, What: "down"}
	})
	if err != nil {
		t.Fatal(err)
	}

	asked, err := askOnce(t, s, nil)
	if err != nil || asked != "c" {
		t.Errorf("%s was asked first: %v", asked, err)
	}
}
