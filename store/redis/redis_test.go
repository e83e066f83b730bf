//go:build unix

package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store/redis"
)

const patience = 20 * time.Second

// open returns a Shared over a server, and a client to look behind it.
func open(t *testing.T, addr string, o redis.Options) (*redis.Shared, *goredis.Client) {
	t.Helper()

	if o.Timeout == 0 {
		o.Timeout = patience // a machine with much else to do is not what is tested
	}

	s, err := redis.Open("redis://"+addr, o)
	if err != nil {
		t.Fatal(err)
	}

	client := goredis.NewClient(&goredis.Options{
		Addr:                     addr,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})

	t.Cleanup(func() {
		if err := errors.Join(s.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})

	return s, client
}

// eventually waits for a condition of the server.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()

	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()

	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		case <-tick.C:
		}
	}
}

func TestLimiter(t *testing.T) {
	addr := testenv.Redis(t)
	conformance.TestLimiter(t, func(t *testing.T) conformance.LimiterHarness {
		s, client := open(t, addr, redis.Options{Prefix: t.Name() + ":"})
		now := func() time.Time {
			at, err := client.Time(context.WithoutCancel(t.Context())).Result()
			if err != nil {
				t.Fatal(err)
			}

			return at
		}

		return conformance.LimiterHarness{
			Limiter: s,
			Now:     now,
			Wait: func(d time.Duration) {
				until := now().Add(d)

				eventually(t, "the clock goes on", func() bool { return !now().Before(until) })
			},
		}
	})
}

func TestWaker(t *testing.T) {
	defer goleak.VerifyNone(t)

	conformance.TestWaker(t, func(t *testing.T) conformance.WakerHarness {
		addr := testenv.Redis(t)
		a, client := open(t, addr, redis.Options{})
		b, _ := open(t, addr, redis.Options{})
		stranger, _ := open(t, addr, redis.Options{Prefix: "other:"})

		return conformance.WakerHarness{
			A:        a,
			B:        b,
			Stranger: stranger,
			Cut: func() {
				if err := client.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// TestProcessesShareABucket takes from one bucket in two processes.
func TestProcessesShareABucket(t *testing.T) {
	addr := testenv.Redis(t)
	a, client := open(t, addr, redis.Options{})
	b, _ := open(t, addr, redis.Options{})
	began, allowed := time.Now(), 0

	for range 10 {
		for _, s := range []*redis.Shared{a, b} {
			ok, _, err := s.Allow(t.Context(), "key/1", 1, 6)
			if err != nil {
				t.Fatal(err)
			}

			if ok {
				allowed++
			}
		}
	}

	if most := 6 + int(time.Since(began)/time.Second) + 1; allowed < 6 || allowed > most {
		t.Errorf("two processes allowed %d requests of a burst of 6, want 6 to %d", allowed, most)
	}
	// What is kept is one key per bucket, which goes when the bucket is full again.
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || keys[0] != "payments:limit:key/1" {
		t.Fatalf("Redis holds %q (%v)", keys, err)
	}

	if left, err := client.PTTL(t.Context(), keys[0]).
		Result(); err != nil || left <= 0 ||
		left > 6*time.Second {
		t.Errorf("the bucket is kept for %s (%v), want at most the 6 s until it is full", left, err)
	}
	// A clock that was set back leaves buckets that are full only in the far future.
	if err := client.Set(t.Context(), keys[0], time.Now().Add(time.Hour).UnixMicro(), 0).Err(); err != nil {
		t.Fatal(err)
	}

	eventually(t, "a token although the clock was set back", func() bool {
		ok, after, err := a.Allow(t.Context(), "key/1", 1, 6)
		if err != nil || after > 1 {
			t.Fatalf("retry after %d s (%v)", after, err)
		}

		return ok
	})
}

func TestRedisDown(t *testing.T) {
	defer goleak.VerifyNone(t)

	server := testenv.RedisServer(t)
	s, _ := open(t, server.Addr, redis.Options{Timeout: 100 * time.Millisecond})
	eventually(t, "a token", func() bool { ok, _, _ := s.Allow(t.Context(), "k", 1, 5); return ok })
	server.Kill()

	var down error

	for range 3 {
		var ok bool
		if ok, _, down = s.Allow(
			t.Context(), "k", 1, 5,
		); ok || !errors.Is(down, fault.Unavailable) ||
			fault.Code(down) != "redis_down" {
			t.Fatalf("without Redis Allow answered %v, %v", ok, down)
		}
	}

	if !strings.Contains(down.Error(), "try again") {
		t.Errorf("the error does not say what to do: %v", down)
	}

	if err := s.Wake(
		t.Context(), "p",
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "redis_down" {
		t.Errorf("without Redis Wake answered %v", err)
	}

	if err := s.Wakes(
		t.Context(), func(string) {},
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "redis_down" {
		t.Errorf("without Redis Wakes answered %v", err)
	}
}

// TestRedisThatDoesNotAnswer has a server accept what it is sent and say nothing: the first request
// waits for the time limit, those after it do not wait, and once the server answers again it is
// asked again.
func TestRedisThatDoesNotAnswer(t *testing.T) {
	s, client := open(t, testenv.Redis(t), redis.Options{Timeout: 200 * time.Millisecond})
	eventually(t, "a token", func() bool { ok, _, _ := s.Allow(t.Context(), "k", 1, 5); return ok })

	if err := client.Do(t.Context(), "CLIENT", "PAUSE", 2000, "ALL").Err(); err != nil {
		t.Fatal(err)
	}

	began := time.Now()

	for n := range 50 {
		if _, _, err := s.Allow(t.Context(), "k", 1000, 1000); !errors.Is(err, fault.Unavailable) {
			t.Fatalf("request %d: %v", n, err)
		}
	}

	if took := time.Since(began); took > 50*200*time.Millisecond/2 {
		t.Errorf("50 requests waited %s for a Redis that does not answer", took)
	}

	eventually(
		t, "Redis is asked again",
		func() bool { ok, _, err := s.Allow(t.Context(), "k", 1000, 1000); return ok && err == nil },
	)
}

func TestACanceledCallerDoesNotMarkRedisDown(t *testing.T) {
	s, _ := open(t, testenv.Redis(t), redis.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, _, err := s.Allow(ctx, "k", 1, 5); !errors.Is(err, context.Canceled) {
		t.Errorf("Allow under a canceled context answered %v", err)
	}

	if ok, _, err := s.Allow(t.Context(), "k", 1, 5); !ok || err != nil {
		t.Errorf("the next request: %v %v", ok, err)
	}
}

func TestRefusals(t *testing.T) {
	if _, err := redis.Open(
		"redis://user:top secret@\x7f", redis.Options{},
	); !errors.Is(err, fault.Invalid) ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("a broken URL answered %v", err)
	}

	s, client := open(t, testenv.Redis(t), redis.Options{})
	for _, bad := range [][2]int{{0, 1}, {1, 0}, {-1, 5}} {
		if _, _, err := s.Allow(t.Context(), "k", bad[0], bad[1]); !errors.Is(err, fault.Invalid) {
			t.Errorf("%d a second, burst %d: %v", bad[0], bad[1], err)
		}
	}

	if err := client.HSet(t.Context(), "payments:limit:k", "a", "b").Err(); err != nil {
		t.Fatal(err)
	}

	if _, _, err := s.Allow(
		t.Context(), "k", 1, 1,
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "redis_refused" {
		t.Errorf("a key that is something else answered %v", err)
	}
}
