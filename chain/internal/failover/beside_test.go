package failover_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// A node that backs off, as one answer of it was lost, is asked at last where one node's word does not count, and not
// waited for where it hangs.
func TestNodeThatBacksOffIsAskedAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(false)
		answered := s.Nodes[0]

		fails := func(_ context.Context, e *endpoint) (bool, error) {
			if e.Host == "b" {
				return false, &failover.Failure{Host: e.Host, What: "reset"}
			}

			return false, nil
		}
		if err := s.AskBeside(t.Context(), answered, 0, fails); err != nil {
			t.Fatal(err)
		}

		var asked []string

		answers := func(_ context.Context, e *endpoint) (bool, error) {
			asked = append(asked, e.Host)
			return false, nil
		}
		if err := s.AskBeside(
			t.Context(),
			answered,
			0,
			answers,
		); err != nil ||
			!slices.Equal(asked, []string{"c"}) {
			t.Errorf("besides a were asked %v, %v", asked, err)
		}

		asked = nil
		if err := s.AskAllBeside(t.Context(), answered, 0, answers); err != nil ||
			!slices.Equal(asked, []string{"c", "b"}) {
			t.Errorf("all besides a were %v, %v", asked, err)
		}

		// It hangs while it backs off.
		if err := s.AskBeside(t.Context(), answered, 0, fails); err != nil {
			t.Fatal(err)
		}

		began := time.Now()
		hangs := func(ctx context.Context, e *endpoint) (bool, error) {
			if e.Host == "c" {
				return false, nil
			}

			<-ctx.Done()

			return false, &failover.Failure{Host: e.Host, What: "hangs"}
		}

		if err := s.AskAllBeside(
			t.Context(),
			answered,
			0,
			hangs,
		); err != nil ||
			time.Since(began) > 2*time.Second {
			t.Errorf("a node that hangs was waited for %s, %v", time.Since(began), err)
		}
	})
}
