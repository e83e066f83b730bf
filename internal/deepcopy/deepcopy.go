// Package deepcopy copies records with everything they point to, and normalises their times. The stores
// use it, so that callers never share memory with a stored row and all stores return equal records.
package deepcopy

import (
	"bytes"
	"maps"
	"reflect"
	"time"
)

// Of returns a function that copies a record of a type with everything it points to. Values behind
// unexported fields are shared: in the records those are decimals, which are immutable.
func Of[T any]() func(*T) *T {
	return copierOf[T](deepener(reflect.TypeFor[T](), true))
}

// OfStored returns a function that copies a record of a type whose times were normalized when it was stored.
func OfStored[T any]() func(*T) *T { return copierOf[T](deepener(reflect.TypeFor[T](), false)) }

func copierOf[T any](deepen func(reflect.Value)) func(*T) *T {
	return func(record *T) *T {
		c := *record
		if deepen != nil {
			deepen(reflect.ValueOf(&c).Elem())
		}

		return &c
	}
}

// deepener returns a function that replaces, in a shallow copy, what it shares with its original. It
// returns nil when a value of the type shares nothing. With times set, times become UTC in whole microseconds, as
// from a database.
func deepener(t reflect.Type, times bool) func(reflect.Value) {
	if t == reflect.TypeFor[time.Time]() {
		if !times {
			return nil // it points to its zone alone, which nobody writes
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
func normalizeTime(v reflect.Value) {
	at := v.Addr().Interface().(*time.Time)
	if *at = at.UTC().Truncate(time.Microsecond); at.IsZero() {
		*at = time.Time{}
	}
}

func structDeepener(t reflect.Type, times bool) func(reflect.Value) {
	type part struct {
		field  int
		deepen func(reflect.Value)
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

	return func(v reflect.Value) {
		for _, p := range parts {
			p.deepen(v.Field(p.field))
		}
	}
}

func pointerDeepener(t reflect.Type, times bool) func(reflect.Value) {
	deepen := deepener(t.Elem(), times)

	return func(v reflect.Value) {
		if v.IsNil() {
			return
		}

		c := reflect.New(t.Elem())
		c.Elem().Set(v.Elem())

		if deepen != nil {
			deepen(c.Elem())
		}

		v.Set(c)
	}
}

func sliceDeepener(t reflect.Type, times bool) func(reflect.Value) {
	// Envelopes and tags. Reflection would allocate a header too.
	if t == reflect.TypeFor[[]byte]() {
		return cloneBytes
	}

	deepen := deepener(t.Elem(), times)

	return func(v reflect.Value) {
		if v.IsNil() {
			return
		}

		c := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(c, v)

		for i := 0; deepen != nil && i < c.Len(); i++ {
			deepen(c.Index(i))
		}

		v.Set(c)
	}
}

func mapDeepener(t reflect.Type, times bool) func(reflect.Value) {
	// The metadata of records. Reflection would allocate for each of its entries.
	if t == reflect.TypeFor[map[string]string]() {
		return cloneTexts
	}

	deepen := deepener(t.Elem(), times)

	return func(v reflect.Value) {
		if v.IsNil() {
			return
		}

		c := reflect.MakeMapWithSize(t, v.Len())
		for it := v.MapRange(); it.Next(); {
			e := reflect.New(t.Elem()).Elem()
			e.Set(it.Value())

			if deepen != nil {
				deepen(e)
			}

			c.SetMapIndex(it.Key(), e)
		}

		v.Set(c)
	}
}

func cloneTexts(v reflect.Value) {
	texts := v.Addr().Interface().(*map[string]string)
	*texts = maps.Clone(*texts)
}

func cloneBytes(v reflect.Value) {
	text := v.Addr().Interface().(*[]byte)
	*text = bytes.Clone(*text)
}
