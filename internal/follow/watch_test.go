package follow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// A node that neither answers nor refuses costs the lease within a lease's length, and holds up neither Health nor
// another process.
func TestNodeThatHangsGivesTheLeaseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := sim.New(sim.Config{}), newDB()
		f := newFollower(t, c, d, "a")
		c.Mine(2)
		drainAll(t, f)

		c.SetIntercept(func(ctx context.Context, _ sim.Method) error {
			<-ctx.Done()
			return ctx.Err()
		})
		c.Mine(1)

		began, ended := time.Now(), make(chan error, 1)

		go func() {
			_, err := f.Step(t.Context())
			ended <- err
		}()

		time.Sleep(time.Second)

		if !f.Health().Following {
			t.Error("Health while the step hangs")
		}

		err := <-ended
		if took := time.Since(began); fault.Code(err) != "node_hangs" || took > heartbeat.LeaseFor {
			t.Errorf("%v after %s", err, took)
		}

		if h := f.Health(); h.Following || h.LastError == "" || h.FailingSince.IsZero() {
			t.Errorf("after it: %+v", h)
		}

		c.SetIntercept(nil)

		other := newFollower(t, c, d, "b")
		drainAll(t, other)

		if !other.Health().Following {
			t.Error("another process did not take over")
		}
	})
}

// A reading that takes long goes on while the node answers.
func TestLongReadingGoesOnWhileTheNodeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := sim.New(sim.Config{}), newDB()
		f := newFollower(t, c, d, "a")
		c.Mine(2)
		drainAll(t, f)

		c.SetIntercept(func(ctx context.Context, m sim.Method) error {
			if m != sim.MethodBlocks {
				return nil
			}

			select {
			case <-time.After(10 * time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		c.Mine(1)

		if did, err := f.Step(t.Context()); !did || err != nil {
			t.Errorf("did %v, %v", did, err)
		}
	})
}
