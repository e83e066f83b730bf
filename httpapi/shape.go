package httpapi

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/fault"
)

// shape is a Go type together with the rules that its tags put on input. The document is made from
// the same tags (by huma's schema generator), so that what is documented is what is enforced:
//
//	minLength, maxLength, pattern, enum   of strings, and of the entries of lists of strings
//	minimum, maximum                      of integers
//	maxItems                              of lists
//	maxProperties, keyMaxLength           of maps of strings; maxLength is that of the values
//
// A field without omitempty is required.
type shape struct {
	typ    reflect.Type
	fields []field
}

type field struct {
	name         string
	index        []int
	required     bool
	min, max     *int64 // of a length or a number
	pattern      *regexp.Regexp
	enum         []string
	maxItems     int
	keyMaxLength int
	inside       *shape // of a struct, or of the structs of a list
}

// shapeOf returns the shape of a type whose fields are named by the tag json or query.
func shapeOf[T any](tag string) *shape { return newShape(reflect.TypeFor[T](), tag) }

func newShape(t reflect.Type, tag string) *shape {
	s := &shape{typ: t}
	if t.Kind() != reflect.Struct {
		return s
	}

	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get(tag), ",")
		if name == "" || name == "-" {
			continue
		}

		v := field{
			name:  name,
			index: f.Index,
			required: tag == "json" && !strings.Contains(options, "omit") ||
				f.Tag.Get("required") == "true",
			maxItems:     tagInt(f, "maxItems", "maxProperties"),
			keyMaxLength: tagInt(f, "keyMaxLength"),
		}
		for _, bound := range []struct {
			tag string
			to  **int64
		}{{"minLength", &v.min}, {"minimum", &v.min}, {"maxLength", &v.max}, {"maximum", &v.max}} {
			if _, ok := f.Tag.Lookup(bound.tag); ok {
				n := int64(tagInt(f, bound.tag))
				*bound.to = &n
			}
		}

		if f.Type.Kind() == reflect.Int && (v.min == nil) != (v.max == nil) {
			panic("httpapi: field " + f.Name + " has only one of minimum and maximum")
		}

		if p := f.Tag.Get("pattern"); p != "" {
			v.pattern = regexp.MustCompile(p)
		}

		if e := f.Tag.Get("enum"); e != "" {
			v.enum = strings.Split(e, ",")
		}

		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}

		if inner.Kind() == reflect.Struct && inner.PkgPath() == t.PkgPath() {
			v.inside = newShape(inner, tag)
		}

		s.fields = append(s.fields, v)
	}

	return s
}

// hasRequired reports whether a field, at any depth, is required.
func (s *shape) hasRequired() bool {
	return slices.ContainsFunc(
		s.fields, func(f field) bool { return f.required || f.inside != nil && f.inside.hasRequired() },
	)
}

func tagInt(f reflect.StructField, tags ...string) int {
	for _, tag := range tags {
		if s, ok := f.Tag.Lookup(tag); ok {
			n, err := strconv.Atoi(s)
			if err != nil {
				panic("httpapi: field " + f.Name + " has the tag " + tag + ":" + s)
			}

			return n
		}
	}

	return 0
}

// check refuses a decoded value that breaks a rule; the error names the field by its path
// ("options[0].asset").
func (s *shape) check(v reflect.Value, path string) error {
	for i := range s.fields {
		f := &s.fields[i]
		if err := f.check(v.FieldByIndex(f.index), path+f.name); err != nil {
			return err
		}
	}

	return nil
}

func (f *field) check(v reflect.Value, path string) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return f.absent(path)
		}

		return f.value(v.Elem(), path)
	}

	if v.IsZero() {
		return f.absent(path)
	}

	return f.value(v, path)
}

func (f *field) absent(path string) error {
	if f.required {
		return fault.Param(path, "parameter_missing", "%s is missing", path)
	}

	return nil
}

func (f *field) value(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.String:
		return f.text(v.String(), path)
	case reflect.Int, reflect.Int64:
		if n := v.Int(); f.min != nil && n < *f.min || f.max != nil && n > *f.max {
			return invalid(path, "%s must be %d to %d", path, *f.min, *f.max)
		}
	case reflect.Struct:
		if f.inside != nil {
			return f.inside.check(v, path+".")
		}
	case reflect.Slice:
		if f.maxItems > 0 && v.Len() > f.maxItems {
			return invalid(path, "%s has %d entries, and %d is the most", path, v.Len(), f.maxItems)
		}

		for i := range v.Len() {
			if err := f.value(v.Index(i), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	case reflect.Map:
		if f.maxItems > 0 && v.Len() > f.maxItems {
			return invalid(path, "%s has %d keys, and %d is the most", path, v.Len(), f.maxItems)
		}

		for it := v.MapRange(); it.Next(); {
			key := it.Key().String()
			if n := utf8.RuneCountInString(key); n < 1 || f.keyMaxLength > 0 && n > f.keyMaxLength {
				return invalid(path, "the keys of %s must have 1 to %d characters", path, f.keyMaxLength)
			}

			if err := f.text(it.Value().String(), path+"."+key); err != nil {
				return err
			}
		}
	}

	return nil
}

func (f *field) text(s, path string) error {
	n := int64(utf8.RuneCountInString(s))
	switch {
	case f.max != nil && n > *f.max:
		return invalid(path, "%s has %d characters, and %d is the most", path, n, *f.max)
	case f.min != nil && n < *f.min:
		return invalid(path, "%s has %d characters, and %d is the least", path, n, *f.min)
	case len(f.enum) > 0 && !slices.Contains(f.enum, s):
		return invalid(path, "%s is %q: it must be one of %s", path, clip(s), strings.Join(f.enum, ", "))
	case f.pattern != nil && !f.pattern.MatchString(s):
		return invalid(path, "%s is %q, which does not match %s", path, clip(s), f.pattern)
	}

	return nil
}

func invalid(param, format string, args ...any) error {
	return fault.Param(param, "parameter_invalid", format, args...)
}

// clip cuts a caller's text for a message to a bearable length.
func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}

	return s
}
