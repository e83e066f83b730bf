package deepcopy

import (
	"reflect"
	"testing"
	"time"
)

// A value of a type known at run time is copied as Of copies it: nothing is shared, and its times are as stores keep
// them.
func TestOfTypeCopiesAsOf(t *testing.T) {
	type record struct {
		At   time.Time
		Tags []string
	}

	original := record{
		At:   time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("east", 3600)),
		Tags: []string{"a"},
	}

	got, ok := OfType(reflect.TypeFor[record]())(reflect.ValueOf(&original).Elem()).Interface().(*record)
	if !ok {
		t.Fatal("not a pointer to a record")
	}

	if want := Of[record]()(&original); !reflect.DeepEqual(got, want) {
		t.Errorf("copied as %+v, want %+v", got, want)
	}

	got.Tags[0] = "b"
	if original.Tags[0] != "a" {
		t.Error("the copy shares its tags with the original")
	}
}
