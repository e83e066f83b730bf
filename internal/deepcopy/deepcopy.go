// Package deepcopy copies records with everything they point to, and normalizes their times. The stores use
// it, so that callers never share memory with a stored row, and all stores return equal records.
package deepcopy

import (
	"maps"
	"reflect"
	"time"
)

// Of returns a function that copies a record of a type with everything it points to. Values behind
// unexported fields are shared: in the records those are decimals, which are immutable.
func Of[T any]() func(*T) *T {
	return copierOf[T](deepener(reflect.TypeFor[T](), true))
}

// OfType returns a function like that of Of, for values of a type that is known at run time. It returns a
// pointer.
func OfType(t reflect.Type) func(original reflect.Value) (pointer reflect.Value) {
	deepen := deepener(t, true)

	return func(original reflect.Value) reflect.Value {
		c := reflect.New(t)
		c.Elem().Set(original)

		if deepen != nil {
			deepen(c.Elem(), original)
		}

		return c
	}
}

// OfStored returns a function that copies a record whose times were normalized when it was stored.
func OfStored[T any]() func(*T) *T { return copierOf[T](deepener(reflect.TypeFor[T](), false)) }

func copierOf[T any](deepen deepenFunc) func(*T) *T {
	return func(record *T) *T {
		c := *record
		if deepen != nil {
			deepen(reflect.ValueOf(&c).Elem(), reflect.ValueOf(record).Elem())
		}

		return &c
	}
}

// deepenFunc replaces the parts of a shallow copy that it shares with its original. The copy is settable.
type deepenFunc func(shallow, original reflect.Value)

// deepener returns the function of a type, or nil if its values share nothing. If times is set, it changes
// times to UTC in whole microseconds, as a database would.
func deepener(t reflect.Type, times bool) deepenFunc {
	if t == reflect.TypeFor[time.Time]() {
		if !times {
			return nil // it points only to its zone, which is never written
		}

		return normalizeTime
	}

	switch t.Kind() {
	case reflect.Struct:
		return structDeepener(t, times)
	case reflect.Pointer:
		return pointerDeepener(t, times)
	case reflect.Slice:
		return sliceDeepener(t, times)
	case reflect.Map:
		return mapDeepener(t, times)
	}

	return nil
}

// normalizeTime truncates a time to microseconds and sets it to UTC.
func normalizeTime(shallow, _ reflect.Value) {
	at := shallow.Addr().Interface().(*time.Time)
	if *at = at.UTC().Truncate(time.Microsecond); at.IsZero() {
		*at = time.Time{}
	}
}

func structDeepener(t reflect.Type, times bool) deepenFunc {
	type part struct {
		field  int
		deepen deepenFunc
	}

	var parts []part

	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			if deepen := deepener(f.Type, times); deepen != nil {
				parts = append(parts, part{i, deepen})
			}
		}
	}

	if parts == nil {
		return nil
	}

	return func(shallow, original reflect.Value) {
		for _, p := range parts {
			p.deepen(shallow.Field(p.field), original.Field(p.field))
		}
	}
}

func pointerDeepener(t reflect.Type, times bool) deepenFunc {
	deepen := deepener(t.Elem(), times)

	return func(shallow, original reflect.Value) {
		if original.IsNil() {
			return
		}

		shallow.Set(reflect.New(t.Elem()))
		shallow.Elem().Set(original.Elem())

		if deepen != nil {
			deepen(shallow.Elem(), original.Elem())
		}
	}
}

func sliceDeepener(t reflect.Type, times bool) deepenFunc {
	deepen := deepener(t.Elem(), times)

	return func(shallow, original reflect.Value) {
		if original.Len() == 0 {
			shallow.SetCap(0) // nil stays nil, and empty empty
			return
		}

		// MakeSlice would allocate a header too.
		shallow.SetZero()
		shallow.Grow(original.Len())
		shallow.SetLen(original.Len())
		reflect.Copy(shallow, original)

		for i := 0; deepen != nil && i < shallow.Len(); i++ {
			deepen(shallow.Index(i), original.Index(i))
		}
	}
}

func mapDeepener(t reflect.Type, times bool) deepenFunc {
	// The metadata of records: reflection would allocate for each entry.
	if t == reflect.TypeFor[map[string]string]() {
		return cloneTexts
	}

	deepen := deepener(t.Elem(), times)

	return func(shallow, original reflect.Value) {
		if original.IsNil() {
			return
		}

		shallow.Set(reflect.MakeMapWithSize(t, original.Len()))

		for it := original.MapRange(); it.Next(); {
			value := it.Value()

			e := reflect.New(t.Elem()).Elem()
			e.Set(value)

			if deepen != nil {
				deepen(e, value)
			}

			shallow.SetMapIndex(it.Key(), e)
		}
	}
}

func cloneTexts(shallow, _ reflect.Value) {
	texts := shallow.Addr().Interface().(*map[string]string)
	*texts = maps.Clone(*texts)
}
