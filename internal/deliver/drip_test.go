package deliver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// pace is how a server in the test answers, in fake time.
type pace struct {
	headers time.Duration // until the headers are complete; a client sees nothing of a part of them
	every   time.Duration // between the bytes of the body
	bytes   int
}

// dripping is a transport to servers that answer at their pace.
type dripping struct {
	inMemory
	of func(host string) pace
}

func (d *dripping) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}

	d.mu.Lock()
	d.requests = append(d.requests, request{at: time.Now(), host: r.URL.Host, header: r.Header})
	d.mu.Unlock()

	answer := d.of(r.URL.Host)
	if !pause(r.Context(), answer.headers) {
		return nil, r.Context().Err()
	}

	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{},
		Body:       &drops{ctx: r.Context(), pace: answer},
		Request:    r,
	}, nil
}

// drops is a body of which one byte comes at a time. It fails as one of net/http when its request is canceled.
type drops struct {
	pace
	ctx context.Context
}

func (d *drops) Read(b []byte) (int, error) {
	if d.bytes == 0 {
		return 0, io.EOF
	}

	if !pause(d.ctx, d.every) {
		return 0, d.ctx.Err()
	}

	d.bytes--
	b[0] = '.'

	return 1, nil
}

func (d *drops) Close() error { return nil }

// pause waits and reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}

	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Headers, the whole body, and each wait for bytes of it have deadlines of their own, and the attempt one.
func TestAnswersHaveDeadlines(t *testing.T) {
	configured := webhook.Policy{
		Timeout:       12 * time.Second,
		HeaderTimeout: 6 * time.Second,
		BodyTimeout:   4 * time.Second,
		IdleTimeout:   time.Second,
	}

	for name, test := range map[string]struct {
		policy webhook.Policy
		pace   pace
		want   time.Duration
		failed string
		body   int
	}{
		"headers in time": {pace: pace{headers: 14 * time.Second}, want: 14 * time.Second},
		"headers late":    {pace: pace{headers: time.Hour}, want: 15 * time.Second, failed: "timeout"},
		"body in time":    {pace: pace{every: time.Second, bytes: 4}, want: 4 * time.Second, body: 4},
		"body drips": {
			pace: pace{every: 900 * time.Millisecond, bytes: 99},
			want: 5 * time.Second,
			body: 5,
		},
		"body stands still": {pace: pace{every: time.Hour, bytes: 99}, want: 2 * time.Second},
		"body after late headers": {
			pace: pace{14 * time.Second, 900 * time.Millisecond, 9},
			want: 15 * time.Second,
			body: 1,
		},
		"configured headers": {configured, pace{headers: time.Hour}, 6 * time.Second, "timeout", 0},
		"configured body": {
			configured,
			pace{every: 450 * time.Millisecond, bytes: 99},
			4 * time.Second,
			"",
			8,
		},
		"configured idle": {configured, pace{every: 2 * time.Second, bytes: 99}, time.Second, "", 0},
		"configured, all together": {
			configured,
			pace{5 * time.Second, 450 * time.Millisecond, 99},
			9 * time.Second,
			"",
			8,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := bubble(t, always(200), func(c *Config) { c.Policy = test.policy })
				h.client.Transport = &dripping{of: func(string) pace { return test.pace }}
				e, _ := h.endpoint(merchant, "https://m.example/", event.InvoicePaid)
				h.happen(merchant, event.InvoicePaid)

				if _, err := h.Step(t.Context()); err != nil {
					t.Fatal(err)
				}

				log := h.deliveries(e.ID)[0].Log
				if len(log) != 1 {
					t.Fatalf("%d attempts", len(log))
				}

				got := log[0]
				if got.Error != test.failed || time.Duration(got.DurationMS)*time.Millisecond != test.want {
					t.Errorf(
						"%q after %d ms, want %q after %s", got.Error, got.DurationMS, test.failed, test.want,
					)
				}

				if got.Response == nil {
					return
				}

				cut := test.pace.bytes > test.body
				if len(got.Response.Body) != test.body || got.Response.BodyTruncated != cut {
					t.Errorf("body %q, truncated %v", got.Response.Body, got.Response.BodyTruncated)
				}
			})
		})
	}
}

// drippers are the ways in which an endpoint may take as long as it can: each succeeds but the last.
var drippers = map[string]pace{
	"body":               {every: time.Second, bytes: 99},
	"headers, then body": {headers: 14 * time.Second, every: 500 * time.Millisecond, bytes: 99},
	"headers":            {headers: time.Hour},
}

// 64 endpoints of four accounts drip: nobody else's delivery is later than without them by more than one slot of
// their own. The short form has 8 accounts, TestSoakDrippingEndpointsDelayNobodyElse 1,000 endpoints of 50.
func TestDrippingEndpointsDelayNobodyElse(t *testing.T) { drippersDelayNobody(t, 8, 8) }

func TestSoakDrippingEndpointsDelayNobodyElse(t *testing.T) {
	if os.Getenv("SOAKTIME") == "" {
		t.Skip("make soak plays 1,000 endpoints of 50 accounts")
	}

	drippersDelayNobody(t, 50, 6)
}

// quickAnswer is how long an endpoint takes that does not drip: one slot of its own.
const quickAnswer = 20 * time.Millisecond

func drippersDelayNobody(t *testing.T, accounts, events int) {
	t.Helper()

	for _, live := range []bool{false, true} {
		alone := worstDelay(t, accounts, events, live, pace{headers: quickAnswer})

		for name, slow := range drippers {
			t.Run(fmt.Sprint(name, ", live=", live), func(t *testing.T) {
				beside := worstDelay(t, accounts, events, live, slow)
				t.Logf("the others' worst delay: %s, beside drippers %s", alone, beside)

				// A claim may come a poll later; what is due is on time within it and one slot.
				if beside > alone+time.Second+quickAnswer {
					t.Errorf("the others wait %s, and %s without drippers", beside, alone)
				}
			})
		}
	}
}

// worstDelay returns the longest time from an event to its request, at endpoints of accounts without drippers.
// Each account has 16 endpoints live and 4 in test mode, or as many the other way around; all 16 of one mode of
// the first four are slow.
func worstDelay(t *testing.T, accounts, events int, live bool, slow pace) (worst time.Duration) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		merchants := &dripping{of: func(host string) pace {
			if strings.HasPrefix(host, "slow") {
				return slow
			}

			return pace{headers: quickAnswer}
		}}
		h := bubble(t, always(200), nil)
		h.client.Transport = merchants

		var owners []event.Owner

		for i := range accounts {
			for _, mode := range []bool{live, !live} {
				owner := event.Owner{AccountID: fmt.Sprintf("65a0000000000000000001%02d", i), Livemode: mode}
				owners = append(owners, owner)

				name, endpoints := "quick", 4
				if mode == live {
					endpoints = maxEndpoints
				}

				if mode == live && i < 4 {
					name = "slow"
				}

				for e := range endpoints {
					h.endpoint(
						owner,
						fmt.Sprintf("https://%s-%d-%d-%v.example/", name, i, e, mode),
						event.InvoicePaid,
					)
				}
			}
		}

		stop := h.run()

		for range events {
			for _, owner := range owners {
				h.happen(owner, event.InvoicePaid)
			}

			h.Wake()
			time.Sleep(3 * time.Second)
		}

		stop()

		quick := 0

		for _, r := range merchants.requests {
			if strings.HasPrefix(r.host, "slow") {
				continue
			}

			quick++
			made := h.db.rows.events[r.header.Get(webhook.EventIDHeader)].CreatedAt
			worst = max(worst, r.at.Sub(made))
		}

		if want := events * (accounts*20 - 64); quick != want {
			t.Errorf("%d deliveries to the others, want %d", quick, want)
		}
	})

	return worst
}
