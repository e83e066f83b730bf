package paging_test

import (
	"errors"
	"math"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/paging"
)

func TestALimitIsDefaultedOrClamped(t *testing.T) {
	for asked, want := range map[int]int{
		math.MinInt: 1,
		-1:          1,
		0:           50,
		1:           1,
		99:          99,
		100:         100,
		101:         100,
		math.MaxInt: 100,
	} {
		if got := paging.Limit(asked); got != want {
			t.Errorf("a limit of %d gives %d, want %d", asked, got, want)
		}
	}
}

func TestAPageSaysWhetherThereAreMore(t *testing.T) {
	for read, want := range map[int]bool{0: false, 2: false, 3: true} {
		page, more, err := paging.Page(make([]int, read), 2, nil)
		if err != nil || more != want || len(page) != min(read, 2) {
			t.Errorf("%d read: %d entries, more %t, %v", read, len(page), more, err)
		}
	}

	if page, more, err := paging.Page(
		make([]int, 3),
		2,
		errors.New("down"),
	); err == nil || more ||
		page != nil {
		t.Errorf("a failed read gives %v, %t, %v", page, more, err)
	}
}
