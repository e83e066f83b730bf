// Package deepcopy copies records with everything they point to and brings their times into the form in
// which stores keep them: so that nobody holds a part of a stored row, and all stores answer the same.
package deepcopy

import (
	"reflect"
	"time"
)

// Of returns a function that copies a record of a type with everything it points to. Values behind
// unexported fields are shared: in the records those are decimals, which nobody can change.
func Of[T any]() func(*T) *T {
	deepen := deepener(reflect.TypeFor[T]())

	return func(record *T) *T {
		c := *record
		if deepen != nil {
			deepen(reflect.ValueOf(&c).Elem())
		}

		return &c
	}
}

// deepener returns a function that replaces, in a shallow copy, what it shares with its original; nil when a
// value of the type shares nothing. Times come out in UTC and in whole microseconds, as from a database.
func deepener(t reflect.Type) func(reflect.Value) {
	if t == reflect.TypeFor[time.Time]() {
		return func(v reflect.Value) {
			at := v.Addr().Interface().(*time.Time)
			if *at = at.UTC().Truncate(time.Microsecond); at.IsZero() {
				*at = time.Time{}
			}
		}
	}

	switch t.Kind() {
	case reflect.Struct:
		type part struct {
			field  int
			deepen func(reflect.Value)
		}

		var parts []part

		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				if deepen := deepener(f.Type); deepen != nil {
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
	case reflect.Pointer:
		deepen := deepener(t.Elem())

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
	case reflect.Slice:
		deepen := deepener(t.Elem())

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
	case reflect.Map:
		deepen := deepener(t.Elem())

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

	return nil
}
