package deliver

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/webhook"
)

var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestExpiredSecretIsForgotten(t *testing.T) {
	e := webhook.Endpoint{SealedPrevious: []byte{1}, PreviousSecretExpiresAt: began}
	if kept := Pruned(e, began.Add(-1)); len(kept.SealedPrevious) == 0 {
		t.Error("forgotten before it expired")
	}

	if gone := Pruned(e, began); gone.SealedPrevious != nil || !gone.PreviousSecretExpiresAt.IsZero() {
		t.Errorf("kept as %+v", gone)
	}
}

// pitfall 32: the schedule is a table.
func TestRetryDelay(t *testing.T) {
	want := []time.Duration{
		5 * time.Second,
		5 * time.Minute,
		30 * time.Minute,
		2 * time.Hour,
		5 * time.Hour,
		10 * time.Hour,
		10 * time.Hour,
		24 * time.Hour,
		24 * time.Hour,
	}
	for i, base := range want {
		low, high := base-base/10, base+base/10
		if d, ok := retryDelay(i+1, 0, 0); d != low || !ok {
			t.Errorf("the least wait after %d tries is %s, want %s", i+1, d, low)
		}

		if d, ok := retryDelay(i+1, 0, uint64(base/5)); d != high || !ok {
			t.Errorf("the longest wait after %d tries is %s, want %s", i+1, d, high)
		}

		if d, _ := retryDelay(i+1, 0, ^uint64(0)); d < low || d > high {
			t.Errorf("the wait after %d tries is %s", i+1, d)
		}

		if d, _ := retryDelay(i+1, low-1, 0); d != low {
			t.Errorf("after %d tries a shorter wait was honoured: %s", i+1, d)
		}

		if d, _ := retryDelay(i+1, 1000*24*time.Hour, 0); d != max(24*time.Hour, low) {
			t.Errorf("after %d tries a wait of %s", i+1, d)
		}
	}

	for _, tries := range []int{-1, 0, 10, 11, 1 << 40} {
		if _, ok := retryDelay(tries, 0, 0); ok {
			t.Errorf("there is a try after %d", tries)
		}
	}
}

func TestDeliveryMoves(t *testing.T) {
	ended := began.Add(time.Second)

	ok, refused, gone := webhook.Attempt{
		At:         began,
		HTTPStatus: 204,
	}, webhook.Attempt{
		At:         began,
		HTTPStatus: 500,
		Error:      "http_500",
	}, webhook.Attempt{
		At:         began,
		HTTPStatus: 410,
		Error:      "http_410",
	}
	for _, c := range []struct {
		name    string
		status  webhook.DeliveryStatus
		tries   int
		attempt webhook.Attempt
		asked   time.Duration
		want    webhook.DeliveryStatus
		next    time.Duration // after ended; 0: never
	}{
		{"delivered at once", webhook.DeliveryPending, 0, ok, 0, webhook.DeliverySucceeded, 0},
		{"delivered at the last try", webhook.DeliveryPending, 9, ok, 0, webhook.DeliverySucceeded, 0},
		{"tried again", webhook.DeliveryPending, 0, refused, 0, webhook.DeliveryPending, 4500 * time.Millisecond},
		{"tried again when asked", webhook.DeliveryPending, 0, refused, time.Hour, webhook.DeliveryPending, time.Hour},
		{
			"the ninth failed",
			webhook.DeliveryPending,
			8,
			refused,
			0,
			webhook.DeliveryPending,
			24*time.Hour - 144*time.Minute,
		},
		{"the tenth failed", webhook.DeliveryPending, 9, refused, 0, webhook.DeliveryFailed, 0},
		{
			"the tenth failed and asks to wait",
			webhook.DeliveryPending,
			9,
			refused,
			time.Hour,
			webhook.DeliveryFailed,
			0,
		},
		{"gone", webhook.DeliveryPending, 0, gone, time.Hour, webhook.DeliveryFailed, 0},
		{"ended meanwhile, and it failed", webhook.DeliveryFailed, 3, refused, 0, webhook.DeliveryFailed, 0},
		{"ended meanwhile, but it arrived", webhook.DeliveryFailed, 3, ok, 0, webhook.DeliverySucceeded, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := webhook.Delivery{
				Status:       c.status,
				Attempts:     c.tries,
				Log:          make([]webhook.Attempt, c.tries, 20),
				ClaimedBy:    "p",
				ClaimedUntil: ended,
				Fence:        3,
			}
			if c.status == webhook.DeliveryPending {
				before.NextAttemptAt = began
			}

			after := WithAttempt(before, c.attempt, ended, AttemptGone(c.attempt), c.asked, 0)
			if after.Status != c.want || after.Attempts != c.tries+1 || len(after.Log) != c.tries+1 ||
				after.Log[c.tries].At != began ||
				!after.LastAttemptAt.Equal(began) {
				t.Errorf("became %+v", after)
			}

			if next := after.NextAttemptAt; c.next == 0 && !next.IsZero() ||
				c.next != 0 && !next.Equal(ended.Add(c.next)) {
				t.Errorf("next try at %s", next)
			}

			if delivered := !after.DeliveredAt.IsZero(); delivered != (c.want == webhook.DeliverySucceeded) ||
				delivered && !after.DeliveredAt.Equal(ended) {
				t.Errorf("delivered at %s", after.DeliveredAt)
			}

			if after.ClaimedBy != "" || !after.ClaimedUntil.IsZero() || after.Fence != 3 {
				t.Errorf(
					"the claim is still %s until %s, fence %d",
					after.ClaimedBy, after.ClaimedUntil, after.Fence,
				)
			}

			if len(before.Log[:c.tries+1:20]) > 0 && !before.Log[:c.tries+1][c.tries].At.IsZero() {
				t.Error("the log of the record before was written into")
			}
		})
	}
	// A try that nobody knows the outcome of is in the log and spends nothing of the schedule.
	unknown := DeliveryInterrupted(webhook.Delivery{
		Status:        webhook.DeliveryPending,
		NextAttemptAt: began,
		LapsedAt:      ended,
		Log:           []webhook.Attempt{},
	},
		webhook.Attempt{At: began},
	)
	if unknown.Status != webhook.DeliveryPending || !unknown.NextAttemptAt.Equal(began) ||
		unknown.Attempts != 1 ||
		len(unknown.Log) != 1 ||
		unknown.Log[0].Error != "interrupted" ||
		!unknown.LastAttemptAt.Equal(began) ||
		!unknown.LapsedAt.IsZero() {
		t.Errorf("an interrupted one became %+v", unknown)
	}

	if after := WithAttempt(unknown,
		refused, ended, false, 0, 0,
	); after.Attempts != 2 ||
		!after.NextAttemptAt.Equal(ended.Add(4500*time.Millisecond)) {
		t.Errorf("after it, the first failure made %+v", after)
	}

	ended2 := DeliveryFailed(webhook.Delivery{Status: webhook.DeliverySucceeded, DeliveredAt: began})
	if ended2.Status != webhook.DeliverySucceeded {
		t.Error("a delivered one was failed")
	}
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"":                           0,
		"0":                          0,
		"120":                        2 * time.Minute,
		" 120 ":                      2 * time.Minute,
		"86400":                      24 * time.Hour,
		"86401":                      24 * time.Hour,
		"99999999999999999999999999": 24 * time.Hour,
		"-5":                         0,
		"+5":                         0,
		"1.5":                        0,
		"soon":                       0,
		began.Add(time.Hour).Format(http.TimeFormat):             time.Hour,
		began.Add(-time.Hour).Format(http.TimeFormat):            0,
		began.Add(1000 * 24 * time.Hour).Format(http.TimeFormat): 24 * time.Hour,
		began.Add(time.Minute).Format(time.RFC850):               time.Minute,
		began.Add(time.Minute).Format(time.ANSIC):                time.Minute,
		"Sun, 06 Nov 9994 08:49:37 GMT":                          24 * time.Hour,
		"Fri, 31 Dec 0000 00:00:00 GMT":                          0,
		began.Add(time.Hour).Format(time.RFC3339):                0,
		"Fri, 20 Nov 2026 12:30:00 GMT, and some noise":          0,
	} {
		if got := ParseRetryAfter(value, began); got != want {
			t.Errorf("Retry-After %q is %s, want %s", value, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"",
		"120",
		"-1",
		"18446744073709551616",
		"Fri, 20 Nov 2026 12:30:00 GMT",
		"Friday, 20-Nov-26 12:30:00 GMT",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, value string) {
		if d := ParseRetryAfter(value, began); d < 0 || d > maxRetryAfter {
			t.Errorf("Retry-After %q is %s", value, d)
		}
	})
}
