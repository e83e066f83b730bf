package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// A node that refuses two of three calls, whatever their rate, delays nothing by a minute: payments confirm, a payout
// is accepted and paid, and deposits are released, of a service of two processes on a chain that moves. Meanwhile
// Health names the node, and says what it does.
func TestTwoThirdsOfCallsRefusedStopNothing(t *testing.T) {
	t.Parallel()

	const (
		within      = time.Minute
		namedWithin = 30 * time.Second
	)

	undisturbed := playRefused(t, 0, 0)

	for seed := range uint64(3) {
		took := playRefused(t, 67, seed)

		for _, what := range slices.Sorted(maps.Keys(undisturbed)) {
			done, is := took[what]
			t.Logf(
				"%d: %-20s %8v where no call is refused, %8v where 67 %% are",
				seed,
				what,
				undisturbed[what],
				done,
			)

			if !is || done-undisturbed[what] > within {
				t.Errorf(
					"%s, a minute later than where no call is refused: done %t, after %v",
					what,
					is,
					done,
				)
			}
		}

		for process := range 2 {
			if named, is := took[fmt.Sprint("Health ", process)]; !is || named > namedWithin {
				t.Errorf("Health of process %d names the node: %t, after %v", process, is, named)
			}
		}
	}
}

// playRefused plays the scenario with a share of the calls refused, in percent, and returns how long after the
// beginning each thing was done.
func playRefused(t *testing.T, percent int, seed uint64) (took map[string]time.Duration) {
	t.Helper()

	c := newBubbleChain(t, seed)

	synctest.Test(t, func(t *testing.T) {
		s := newBubbleService(t, c)
		defer s.stop()

		s.fund()
		c.refuse(percent)

		took = s.playRefused()

		t.Logf("calls: %v", c.counts())
	})

	return took
}

// playRefused makes three payments to an address each, and a payout.
func (s *bubbleService) playRefused() (took map[string]time.Duration) {
	s.t.Helper()

	began := time.Now()
	took = map[string]time.Duration{}
	done := func(what string) {
		if _, known := took[what]; !known {
			took[what] = time.Since(began).Round(time.Millisecond)
		}
	}

	for _, asset := range []string{"USDT", "TRX", "USDT"} {
		var made struct{ Address chain.Address }

		s.must("POST", "/v1/deposit_addresses", map[string]any{"network": s.slug}, &made)
		s.pay(made.Address, asset, 30_000_000)
	}

	out := s.askPayout()

	for range 4 * 60 * 3 {
		time.Sleep(250 * time.Millisecond)

		for process, trouble := range s.troubles() {
			if trouble == string(chain.NodeRefuses) {
				done(fmt.Sprint("Health ", process))
			}
		}

		confirmed, released := s.payments()
		for i := range confirmed {
			done(fmt.Sprint("payment ", i+1, " confirmed"))
		}

		for i := range released {
			done(fmt.Sprint("payment ", i+1, " released"))
		}

		id, accepted := out()
		if accepted {
			done("payout accepted")
		}

		if accepted && s.payout(id) == "confirmed" {
			done("payout confirmed")

			if released == 3 {
				break
			}
		}
	}

	return took
}

// askPayout asks for a payout, and returns what returns its id once it is accepted.
func (s *bubbleService) askPayout() (out func() (id string, accepted bool)) {
	var made struct{ ID string }

	accepted := make(chan struct{})

	go func() {
		defer close(accepted)

		s.must("POST", "/v1/payouts", map[string]any{
			"asset":       "USDT",
			"network":     s.slug,
			"amount":      "5000000",
			"destination": tronAddress(testenv.WellKnownDevAccounts[3].Address),
		}, &made)
	}()

	return func() (string, bool) {
		select {
		case <-accepted:
			return made.ID, made.ID != ""
		default:
			return "", false
		}
	}
}

// payout returns the status of a payout.
func (s *bubbleService) payout(id string) string {
	s.t.Helper()

	var now struct{ Status string }

	s.must(http.MethodGet, "/v1/payouts/"+id, nil, &now)

	return now.Status
}

// payments returns how many payments are confirmed and released.
func (s *bubbleService) payments() (confirmed, released int) {
	s.t.Helper()

	var page struct{ Data []paymentView }

	s.must(http.MethodGet, "/v1/payments", nil, &page)

	for _, p := range page.Data {
		if p.Status == "confirmed" {
			confirmed++
		}

		if p.Settlement != nil && p.Settlement.Status == "released" {
			released++
		}
	}

	return confirmed, released
}

// troubles returns what Health of each process says of the node.
func (s *bubbleService) troubles() (said []string) {
	s.t.Helper()

	for _, engine := range s.engines {
		report, err := engine.Health(s.t.Context())
		must(s.t, err)

		for _, network := range report.Networks {
			for _, node := range network.Nodes {
				said = append(said, node.Trouble)
			}
		}
	}

	return said
}
