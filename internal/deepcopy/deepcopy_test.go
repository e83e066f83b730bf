package deepcopy_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/deepcopy"
)

type part struct {
	Bytes []byte
	Count *int
}

type record struct {
	At    time.Time
	Parts []part
	ByKey map[string]part
	Texts map[string]string

	Nil, Empty []string
}

func TestCopySharesNothing(t *testing.T) {
	one, other := 1, 2
	spare := make([]string, 0, 4)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("east", 3600))
	made := func() *record {
		return &record{
			At:    at,
			Parts: []part{{Bytes: []byte("a"), Count: &one}, {}},
			ByKey: map[string]part{"k": {Bytes: []byte("b"), Count: &other}},
			Texts: map[string]string{"x": "y"},
			Empty: spare,
		}
	}

	for name, clone := range map[string]func(*record) *record{
		"Of":       deepcopy.Of[record](),
		"OfStored": deepcopy.OfStored[record](),
	} {
		original, want := made(), made()
		if name == "Of" {
			want.At = at.UTC().Truncate(time.Microsecond)
		}

		c := clone(original)
		if !reflect.DeepEqual(c, want) {
			t.Errorf("%s: got %+v, want %+v", name, c, want)
		}

		c.Parts[0].Bytes[0], *c.Parts[0].Count, c.Parts[1].Count = 'z', 9, c.Parts[0].Count
		c.ByKey["k"].Bytes[0], *c.ByKey["k"].Count, c.ByKey["l"] = 'z', 9, part{}
		c.Texts["x"] = "z"
		c.Empty = append(c.Empty, "z")

		if !reflect.DeepEqual(original, made()) || spare[:1][0] != "" {
			t.Errorf("%s: a write to the copy shows in the original: %+v", name, original)
		}
	}
}
