package invoice

import (
	"context"
	"slices"
	"testing"
)

// ranges is a database that only reserves numbers.
type ranges struct {
	database
	next  int64
	sizes []int
}

func (r *ranges) Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	return f(ctx, reserving{ranges: r})
}

// reserving is a transaction of ranges.
type reserving struct {
	Tx
	ranges *ranges
}

func (t reserving) ReserveNumbers(_ context.Context, _ string, n int, first int64) (int64, error) {
	return t.ranges.reserve(n, first)
}

func (r *ranges) reserve(n int, first int64) (int64, error) {
	r.sizes = append(r.sizes, n)
	start := max(r.next, first)
	r.next = start + int64(n)

	return start, nil
}

// A process that is started anew skips no more numbers than it used, and one that is busy seldom asks.
func TestRangesGrow(t *testing.T) {
	db := &ranges{}

	for n := int64(1); n <= 3; n++ { // three starts, an invoice each
		numbers := &sequences{db: db, size: 64, counters: map[string]*sequence{}}
		if got, err := numbers.take(t.Context(), "invoices", 1); err != nil || got != n {
			t.Errorf("start %d gives number %d: %v", n, got, err)
		}
	}

	*db = ranges{}
	numbers := &sequences{db: db, size: 64, counters: map[string]*sequence{}}

	for n := int64(1); n <= 200; n++ {
		if got, err := numbers.take(t.Context(), "invoices", 1); err != nil || got != n {
			t.Fatalf("number %d is %d: %v", n, got, err)
		}
	}

	if want := []int{1, 2, 4, 8, 16, 32, 64, 64, 64}; !slices.Equal(db.sizes, want) {
		t.Errorf("the ranges have %v numbers, want %v", db.sizes, want)
	}
}
