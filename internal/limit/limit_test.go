package limit

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	b := NewBuckets(func() time.Time { return now })
	take := func(key string, perSecond, burst, want int) {
		t.Helper()

		taken, last := 0, 0

		for range 2 * max(want, 1) {
			ok, after, err := b.Allow(t.Context(), key, perSecond, burst)
			if err != nil {
				t.Fatal(err)
			}

			if ok {
				taken++
			} else {
				last = after
			}
		}

		if taken != want || last < 1 {
			t.Errorf("%d tokens of %q, want %d; the rest comes in %d s", taken, key, want, last)
		}
	}
	take("a", 2, 3, 3)
	take("b", 2, 3, 3)
	take("a", 2, 3, 0)

	now = now.Add(500 * time.Millisecond)

	take("a", 2, 3, 1)

	now = now.Add(time.Hour)

	take("a", 2, 3, 3)
	take("a", 2, 8, 5) // the account's settings changed
	take("a", 2, 3, 0)

	now = now.Add(time.Hour)

	take("a", 1, 1, 1)

	now = now.Add(-time.Minute) // a clock that goes back forgives nothing

	take("a", 1, 1, 0)

	now = now.Add(2 * time.Minute)

	take("a", 0, 0, 1)
	take("full", 1_000_000, 300, 300)

	if ok, after, err := b.Allow(t.Context(), "hour", 1, 1); !ok || after != 0 || err != nil {
		t.Error(ok, after, err)
	}

	now = now.Add(-10 * time.Second) // nobody waits for longer than a burst takes to refill

	if ok, after, err := b.Allow(t.Context(), "hour", 1, 1); ok || after != 1 || err != nil {
		t.Errorf("%t: come back in %d s, want 1; %v", ok, after, err)
	}
}

func TestBucketsAreBounded(t *testing.T) {
	now := time.Unix(0, 0)

	b := NewBuckets(func() time.Time { return now })
	for range 2 {
		if ok, _, err := b.Allow(t.Context(), "busy", 1, 2); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}

	for i := range 5 * bucketsKept {
		if ok, _, err := b.Allow(t.Context(), fmt.Sprint(i), 1, 2); !ok || err != nil {
			t.Fatalf("key %d: %t, %v", i, ok, err)
		}

		if i%(bucketsKept/2) == 0 { // a key in use is not forgotten
			if ok, retry, err := b.Allow(t.Context(), "busy", 1, 2); ok || retry != 1 || err != nil {
				t.Fatalf("the busy key after %d others: %t, %d, %v", i, ok, retry, err)
			}
		}

		if kept := len(b.young) + len(b.aged); kept > 2*bucketsKept {
			t.Fatalf("%d buckets are kept", kept)
		}
	}
}

func TestBucketsTogether(t *testing.T) {
	now := time.Now()
	b := NewBuckets(func() time.Time { return now })

	var (
		taken atomic.Int32
		wg    sync.WaitGroup
	)
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if ok, _, _ := b.Allow(t.Context(), "one", 1, 50); ok {
					taken.Add(1)
				}
			}
		})
	}

	wg.Wait()

	if taken.Load() != 50 {
		t.Errorf("%d tokens of 50", taken.Load())
	}
}

func TestClientAddr(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}

	for _, test := range []struct {
		peer      string
		forwarded []string
		want      string // "" for nobody
	}{
		{"192.0.2.1:1234", nil, "192.0.2.1"},
		{"192.0.2.1:1234", []string{"203.0.113.9"}, "192.0.2.1"}, // not a proxy of ours
		{"10.1.1.1:1234", []string{"203.0.113.9"}, "203.0.113.9"},
		// the left one is anybody's word
		{"10.1.1.1:1234", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		{"10.1.1.1:1234", []string{"203.0.113.9, 10.2.2.2"}, "203.0.113.9"},
		{"10.1.1.1:1234", []string{"203.0.113.9", "10.2.2.2"}, "203.0.113.9"},
		{"10.1.1.1:1234", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"10.1.1.1:1234", []string{"203.0.113.9:80"}, "203.0.113.9"},
		{"10.1.1.1:1234", []string{"[2001:db8::1]:80"}, "2001:db8::1"},
		{"10.1.1.1:1234", []string{"nonsense, 203.0.113.9"}, "203.0.113.9"},
		{"10.1.1.1:1234", []string{"203.0.113.9, nonsense"}, ""},
		{"10.1.1.1:1234", []string{"203.0.113.9,"}, ""},
		{"10.1.1.1:1234", nil, "10.1.1.1"},
		{"[::1]:1234", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2:3:4:5:6"},
		{"[::ffff:10.1.1.1]:1", []string{"::ffff:192.0.2.1"}, "192.0.2.1"},
		{"[2001:db8::9%eth0]:1234", nil, "2001:db8::9"},
		{"@", []string{"203.0.113.9"}, ""}, // a Unix socket
	} {
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{ForwardedFor: test.forwarded}}

		got := ""
		if a := ClientAddr(r, ForwardedFor, proxies); a.IsValid() {
			got = a.String()
		}

		if got != test.want {
			t.Errorf("%s forwarding %q is %q, want %q", test.peer, test.forwarded, got, test.want)
		}
	}
}
