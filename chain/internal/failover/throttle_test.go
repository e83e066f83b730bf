package failover_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

func TestEveryFormOfLater(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()

	for _, c := range []struct {
		name         string
		status       int
		header, says string
		body         string
		later        bool
		wait         time.Duration
	}{
		{name: "an answer", status: 200, body: "retry in 5s"},
		{name: "no word of when", status: 429, later: true},
		{name: "seconds", status: 429, header: "Retry-After", says: "3", later: true, wait: 3 * time.Second},
		{name: "at most an hour", status: 429, header: "Retry-After", says: "999999", later: true, wait: time.Hour},
		{name: "none", status: 429, header: "Retry-After", says: "-1", later: true},
		{name: "a word", status: 429, header: "Retry-After", says: "soon", later: true},
		{
			name: "a date", status: 503, header: "Retry-After", says: now.Add(7 * time.Second).Format(http.TimeFormat),
			later: true, wait: 7 * time.Second,
		},
		{
			name: "a date that is over", status: 429, header: "Retry-After",
			says: now.Add(-time.Hour).Format(http.TimeFormat), later: true,
		},
		{name: "a reset", status: 429, header: "RateLimit-Reset", says: "4", later: true, wait: 4 * time.Second},
		{
			name: "a reset at a time", status: 429, header: "X-RateLimit-Reset", says: "1800000009", later: true,
			wait: 9 * time.Second,
		},
		{
			name: "a suspended key", status: 403, later: true, wait: 5 * time.Second,
			body: `{"Error":"The key exceeds the frequency limit, and the query server is suspended for 5s"}`,
		},
		{
			name: "milliseconds in an error", status: 429, later: true, wait: 250 * time.Millisecond,
			body: `{"error":{"code":429,"message":"Too many requests, try again in 250ms"}}`,
		},
		{name: "minutes", status: 503, body: "Please retry in 2 minutes.", later: true, wait: 2 * time.Minute},
		{name: "a forbidden key", status: 403, body: "invalid API key 5s"},
		{name: "a node that is down", status: 503, body: "no backend"},
		{name: "another failure", status: 500, header: "Retry-After", says: "3"},
	} {
		answer := &http.Response{
			StatusCode: c.status,
			Header:     http.Header{},
			Body:       io.NopCloser(strings.NewReader(c.body)),
		}
		if c.header != "" {
			answer.Header.Set(c.header, c.says)
		}

		wait, later := failover.LaterOf(answer, now)
		if wait != c.wait || later != c.later {
			t.Errorf("%s: later %t, in %v; want %t, in %v", c.name, later, wait, c.later, c.wait)
		}

		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != c.body {
			t.Errorf("%s: the body is %q afterwards, %v", c.name, body, err)
		}
	}
}

// answers is a node that answers by a function.
type answers func(body string) *http.Response

func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}

	answer := a(string(body))
	answer.Request = request

	return answer, nil
}

func status(code int, header ...string) *http.Response {
	answer := &http.Response{
		StatusCode: code,
		Header:     http.Header{},
		Body:       io.NopCloser(strings.NewReader("ok")),
	}
	for i := 0; i < len(header); i += 2 {
		answer.Header.Set(header[i], header[i+1])
	}

	return answer
}

func post(t *testing.T, client *http.Client, body string) int {
	t.Helper()

	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, "http://node", bytes.NewReader([]byte(body)),
	)
	if err != nil {
		t.Fatal(err)
	}

	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()

	return answer.StatusCode
}

// Of an operation of many calls each is repeated by itself: two refusals for every answer do not keep it from its end.
func TestOnlyTheRefusedCallIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(false)
		s.Nodes = s.Nodes[:1]
		random := rand.New(rand.NewPCG(1, 2))
		answered := map[string]int{}

		client := s.Nodes[0].Throttled(&http.Client{Transport: answers(func(body string) *http.Response {
			if random.IntN(3) > 0 {
				return status(http.StatusTooManyRequests)
			}

			answered[body]++

			return status(http.StatusOK)
		})}, time.Minute, nil)

		start := time.Now()

		err := s.Ask(t.Context(), 1, 0, func(_ context.Context, e *endpoint) error {
			for _, call := range strings.Split("abcdefghijklmnopqrst", "") {
				if code := post(t, client, call); code != http.StatusOK {
					return e.Fail(failover.Throttled, "%s: %d", call, code)
				}
			}

			return nil
		})
		if err != nil {
			t.Error(err)
		}

		for call, times := range answered {
			if times != 1 {
				t.Errorf("%s was answered %d times", call, times)
			}
		}

		t.Logf("20 calls, of which two thirds were refused, took %v", time.Since(start))

		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A node that is not to be asked before a time is not, and a call that another node could answer does not wait for it.
func TestANodeIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		asks  string
		want  int
		calls int
	}{
		{"alone", 1, "4", http.StatusOK, 2},
		{"alone, and too long", 1, "40", http.StatusTooManyRequests, 1},
		{"of two, for a second", 2, "1", http.StatusOK, 2},
		{"of two", 2, "4", http.StatusTooManyRequests, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSet(true)
				s.Nodes = s.Nodes[:c.nodes]
				calls := 0
				until := time.Time{}

				client := s.Nodes[0].Throttled(&http.Client{Transport: answers(func(string) *http.Response {
					if calls++; calls == 1 {
						seconds, _ := time.ParseDuration(c.asks + "s")
						until = time.Now().Add(seconds)

						return status(http.StatusTooManyRequests, "Retry-After", c.asks)
					}

					if time.Now().Before(until) {
						t.Error("it was asked too soon")
					}

					return status(http.StatusOK)
				})}, time.Minute, nil)

				_ = s.Ask(t.Context(), 1, 0, func(context.Context, *endpoint) error {
					if got := post(t, client, "a"); got != c.want {
						t.Errorf("answered %d, want %d", got, c.want)
					}

					return nil
				})

				if calls != c.calls {
					t.Errorf("it was asked %d times, want %d", calls, c.calls)
				}
			})
		})
	}
}
