package id_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// endless repeats one byte.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}

	return len(p), nil
}

func clockAt(t *time.Time) func() time.Time { return func() time.Time { return *t } }

func TestLayout(t *testing.T) {
	now := time.UnixMilli(0x0123456789ab)

	s := id.New(clockAt(&now), bytes.NewReader([]byte{
		0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, // a new millisecond: 48 bits
		0x00, 0x00, 0x00, 0x0a, // the same: a step of 10 + 1
		0x00, 0x00, 0x00, 0x00, // a step of 0 + 1
		0xff, 0xff, 0xff, 0xff, // the longest step, 2^32
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
	}))
	for _, want := range []string{
		"0123456789abc0c1c2c3c4c5",
		"0123456789abc0c1c2c3c4d0",
		"0123456789abc0c1c2c3c4d1",
		"0123456789abc0c2c2c3c4d1",
	} {
		if got := s.Next(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}

	now = now.Add(time.Millisecond)

	if got, want := s.Event(), "evt_0123456789ac112233445566"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestIDsGrowWhateverTheClockDoes(t *testing.T) {
	now := start
	s := id.New(clockAt(&now), nil)
	last := ""

	for i := range 20_000 {
		switch rand.IntN(4) {
		case 0: // the clock stands
		case 1:
			now = now.Add(time.Duration(rand.IntN(3)) * time.Millisecond)
		case 2:
			now = now.Add(-time.Duration(rand.IntN(5000)) * time.Millisecond)
		case 3:
			now = now.Add(time.Duration(rand.IntN(999)) * time.Microsecond)
		}

		next := s.Next()
		if next <= last || !id.Valid(next) {
			t.Fatalf("id %d is %s, after %s, with the clock at %s", i, next, last, now)
		}

		last = next
	}
}

func TestClockGoingBackKeepsTheTime(t *testing.T) {
	now := start
	s := id.New(clockAt(&now), nil)
	first := s.Next()
	now = start.Add(-time.Hour)
	second := s.Next()
	now = start.Add(time.Millisecond)

	third := s.Next()
	for i, c := range []struct {
		id   string
		want time.Time
	}{{first, start}, {second, start}, {third, start.Add(time.Millisecond)}} {
		if got, err := id.Time(c.id); err != nil || !got.Equal(c.want) || got.Location() != time.UTC {
			t.Errorf("id %d is of %s (error %v), want %s", i, got, err, c.want)
		}
	}

	if first >= second || second >= third {
		t.Errorf("%s, %s, %s do not grow", first, second, third)
	}
}

func TestOverflowCarriesIntoTheTime(t *testing.T) {
	now := start
	s := id.New(clockAt(&now), endless(0xff)) // randomness 2^48−1, then steps of 2^32

	first, second := s.Next(), s.Next()
	if !strings.HasSuffix(first, "ffffffffffff") || !strings.HasSuffix(second, "0000ffffffff") {
		t.Fatalf("got %s and %s", first, second)
	}

	if got, err := id.Time(second); err != nil || !got.Equal(start.Add(time.Millisecond)) {
		t.Fatalf("the second id is of %s, error %v", got, err)
	}
	// The clock reaches the millisecond that was borrowed: order still holds.
	now = start.Add(time.Millisecond)

	if third := s.Next(); third <= second {
		t.Fatalf("%s after %s", third, second)
	}
}

func TestClocksOutsideTheRange(t *testing.T) {
	now := time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)
	s := id.New(clockAt(&now), nil)

	first, second := s.Next(), s.Next()
	if !strings.HasPrefix(first, "000000000000") || second <= first {
		t.Errorf("before 1970: %s, %s", first, second)
	}

	now = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := id.New(clockAt(&now), endless(0)).Next(); got != "ffffffffffff000000000000" {
		t.Errorf("in the year 20000: %s", got)
	}

	last := id.New(clockAt(&now), endless(0xff))
	last.Next()

	defer func() {
		if recover() == nil {
			t.Error("an id after the last one")
		}
	}()

	last.Next()
}

func TestNoEntropyPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an id without entropy")
		}
	}()

	id.New(nil, bytes.NewReader(nil)).Next()
}

func TestUniqueAndOrderedAcrossGoroutines(t *testing.T) {
	const goroutines, each = 8, 5_000

	s := id.New(nil, nil)
	all := make([][]string, goroutines)

	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range each {
				all[g] = append(all[g], s.Next())
			}
		})
	}

	wg.Wait()

	seen := make(map[string]bool, goroutines*each)

	for g, ids := range all {
		if !slices.IsSorted(ids) {
			t.Errorf("the ids of goroutine %d do not grow", g)
		}

		for _, x := range ids {
			if seen[x] {
				t.Fatalf("%s was made twice", x)
			}

			seen[x] = true
		}
	}
}

func TestTimeIsNow(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)

	got, err := id.Time(id.New(nil, nil).Next())
	if err != nil || got.Before(before) || got.After(time.Now()) {
		t.Fatalf("an id of now is of %s (error %v), made after %s", got, err, before)
	}
}

func TestValidAndTimeRefuse(t *testing.T) {
	good := "0123456789abcdef01234567"
	if !id.Valid(good) {
		t.Fatalf("%s is refused", good)
	}

	for _, bad := range []string{
		"",
		good[1:],
		good + "0",
		strings.ToUpper(good),
		"g" + good[1:],
		" " + good[1:],
		good[:23] + "\n",
		strings.Repeat("é", 12),
		"evt_",
		"evt_" + good[1:],
		"evt_evt_" + good,
		strings.Repeat("0", 1<<20),
	} {
		if id.Valid(bad) {
			t.Errorf("%.40q is valid", bad)
		}

		if _, err := id.Time(
			bad,
		); !errors.Is(err, fault.Invalid) || fault.Code(err) != "id_invalid" ||
			len(err.Error()) > 400 {
			t.Errorf("time of %.40q: error %v, want a short fault.Invalid with id_invalid", bad, err)
		}
	}

	if id.Valid("evt_" + good) {
		t.Error("an event's id is valid as a bare one")
	}
}

func FuzzValidAndTime(f *testing.F) {
	for _, s := range []string{
		"",
		"0123456789abcdef01234567",
		"evt_0123456789abcdef01234567",
		"0123456789ABCDEF01234567",
		"ffffffffffffffffffffffff",
		"00000000000000000000000g",
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, s string) {
		at, err := id.Time(s)
		bare := strings.TrimPrefix(s, "evt_")

		want := len(bare) == 24 && strings.Trim(bare, "0123456789abcdef") == ""
		if (err == nil) != want || id.Valid(bare) != want {
			t.Fatalf("%q: valid %v, error %v, want valid %v", s, id.Valid(bare), err, want)
		}

		if err != nil {
			return
		}
		// An id made at that time has the same first half.
		now := at
		if again := id.New(clockAt(&now), nil).Next(); again[:12] != bare[:12] {
			t.Fatalf("%q is of %s, at which %s is made", s, at, again)
		}
	})
}

var benchmarkID string // keeps the benchmark's ids from living on the stack

func BenchmarkNext(b *testing.B) {
	s := id.New(nil, nil)

	b.ReportAllocs()

	for b.Loop() {
		benchmarkID = s.Next()
	}
}

func BenchmarkNextParallel(b *testing.B) {
	s := id.New(nil, nil)

	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Next()
		}
	})
}

func TestBoundSplitsIDsByTime(t *testing.T) {
	at := time.UnixMilli(0x0123456789ab)

	for _, c := range []struct {
		bound time.Time
		want  string
	}{
		{at, "0123456789ab"},
		{at.Add(1), "0123456789ac"},
		{at.Add(-1), "0123456789ab"},
		{at.Add(-time.Millisecond), "0123456789aa"},
		{time.UnixMilli(-1), "000000000000"},
		{time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), "ffffffffffff"},
	} {
		if got := id.Bound(c.bound); got != c.want {
			t.Errorf("%s: got %s, want %s", c.bound, got, c.want)
		}

		if got := id.EventBound(c.bound); got != "evt_"+c.want {
			t.Errorf("%s: got %s for events, want evt_%s", c.bound, got, c.want)
		}
	}

	made := id.New(clockAt(&at), nil).Next()
	if !id.CreatedAt(made).Equal(at) || made < id.Bound(at) || made >= id.Bound(at.Add(1)) {
		t.Errorf("%s is outside of its millisecond %s", made, at)
	}
}
