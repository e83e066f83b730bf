package deliver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// An account whose endpoint hangs is shown with what waits of it, and since when; others are not.
func TestBacklogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &dripping{of: func(host string) pace {
			if host == "slow.example" {
				return pace{headers: 14 * time.Second}
			}

			return pace{headers: quickAnswer}
		}}
		h := bubble(t, always(200), nil)
		h.client.Transport = merchants
		h.endpoint(merchant, "https://slow.example/", event.InvoicePaid)
		h.endpoint(stranger, "https://quick.example/", event.InvoicePaid)

		if accounts, all, _ := h.Backlogs(); len(accounts) > 0 || all.Waiting > 0 {
			t.Errorf("before Run: %+v %+v", accounts, all)
		}

		stop := h.run()

		for range 40 {
			h.happen(merchant, event.InvoicePaid)
			h.happen(stranger, event.InvoicePaid)
		}

		h.Wake()
		time.Sleep(10 * time.Second)
		synctest.Wait()

		accounts, all, _ := h.Backlogs()
		if len(accounts) != 1 {
			t.Fatalf("%+v", accounts)
		}

		got := accounts[0]
		if got.AccountID != merchant.AccountID || !got.Livemode || got.InFlight != 4 ||
			got.Waiting == 0 || got.Waiting > 4 || got.Age < 9*time.Second || got.Age > 10*time.Second {
			t.Errorf("the slow one: %+v", got)
		}

		if all.Waiting != got.Waiting || all.InFlight != got.InFlight || all.Age != got.Age {
			t.Errorf("all of them: %+v", all)
		}

		// Those that wait by now waited in the store before: they are due since they were made all the same.
		time.Sleep(110 * time.Second)

		if _, all, _ := h.Backlogs(); all.Waiting == 0 || all.Age < 119*time.Second {
			t.Errorf("the oldest is due for 120 s, shown are %+v", all)
		}

		stop()

		if accounts, all, _ := h.Backlogs(); len(accounts) > 0 || all.Waiting > 0 {
			t.Errorf("after Run: %+v %+v", accounts, all)
		}
	})
}

// What waits for its second attempt is due since the time of that. What was never tried is due since it was made,
// however often it was put off.
func TestBacklogIsDueSince(t *testing.T) {
	for attempts, least := range []time.Duration{time.Hour, 0} {
		synctest.Test(t, func(t *testing.T) {
			merchants := &dripping{of: func(string) pace { return pace{headers: 14 * time.Second} }}
			h := bubble(t, always(200), func(c *Config) { c.PerEndpoint = 1 })
			h.client.Transport = merchants
			e, _ := h.endpoint(merchant, "https://slow.example/", event.InvoicePaid)

			h.happen(merchant, event.InvoicePaid)
			h.happen(merchant, event.InvoicePaid)
			time.Sleep(time.Hour)

			for _, d := range h.deliveries(e.ID) {
				d.Attempts, d.NextAttemptAt = attempts, time.Now()
				h.db.rows.deliveries[d.ID] = d
			}

			stop := h.run()
			defer stop()

			time.Sleep(5 * time.Second)
			synctest.Wait()

			if _, all, _ := h.Backlogs(); all.Waiting != 1 || all.Age < least ||
				all.Age > least+5*time.Second {
				t.Errorf("after %d attempts: %+v", attempts, all)
			}
		})
	}
}

// dueCounter counts what is due of the deliveries of a DB in memory.
type dueCounter struct {
	*memory
	takes time.Duration
	err   error
	calls int
}

func (c *dueCounter) Backlogs(_ context.Context, now time.Time) (all []webhook.Backlog, err error) {
	c.calls++
	time.Sleep(c.takes)

	c.mu.Lock()
	defer c.mu.Unlock()

	for _, d := range c.rows.deliveries {
		if since, due := d.DueSince(now); due {
			all = append(all, webhook.Backlog{Owner: d.Owner, Due: 1, Since: since})
		}
	}

	return all, c.err
}

// What is due in the store is shown, whichever process sends it, and counted at most every 15 s, and for at most a
// twentieth of the time. A count that fails leaves the last one.
func TestBacklogOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := &dueCounter{}
		h := bubble(t, always(200), func(c *Config) { c.Backlog = due })
		due.memory = h.db
		h.endpoint(merchant, "https://m.example/", event.InvoicePaid)
		h.happen(merchant, event.InvoicePaid)

		count := func(wait time.Duration, calls int, fails bool) {
			t.Helper()
			time.Sleep(wait)

			if err := h.Count(t.Context()); (err != nil) != fails || due.calls != calls {
				t.Errorf("counted %d times, want %d: %v", due.calls, calls, err)
			}
		}
		shown := func(n int, age time.Duration, at time.Time) {
			t.Helper()

			accounts, all, dueAt := h.Backlogs()
			if all.Due != n || all.Age != age || !dueAt.Equal(at) ||
				n > 0 &&
					(len(accounts) != 1 || accounts[0].AccountID != merchant.AccountID || accounts[0].Due != n) {
				t.Errorf("%d due since %s, counted at %s: %+v %+v %s", n, age, at, all, accounts, dueAt)
			}
		}

		shown(0, 0, time.Time{})

		count(time.Minute, 1, false)

		first := time.Now()

		shown(1, time.Minute, first)

		count(countPace-1, 1, false)

		due.takes = 2 * time.Second

		count(1, 2, false)

		second := time.Now().Add(-due.takes)

		// That took 2 s: the next is 40 s later.
		count(countShare*due.takes-due.takes-1, 2, false)

		due.err = errors.New("the count was canceled")

		count(1, 3, true)
		shown(1, time.Since(first)+time.Minute, second)
	})

	// A store that does not count is asked nothing.
	h := newHarness(t, nil)
	if err := h.Count(t.Context()); err != nil {
		t.Error(err)
	}

	if _, _, at := h.Backlogs(); !at.IsZero() {
		t.Errorf("counted at %s", at)
	}
}
