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

// shape is a Go type with the input rules of its tags. huma's schema generator reads the same tags, so that
// the document shows the enforced rules:
//
//	minLength, maxLength, pattern, enum   of strings, and of the entries of lists of strings
//	format                                of strings; only that they are not empty is checked here
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
	format       string
	maxItems     int
	keyMaxLength int
	nested       *shape // of a struct, or of the structs of a list
}

// shapeOf returns the shape of a type whose wire names are in the tag json or query.
func shapeOf[T any](tag string) *shape { return newShape(reflect.TypeFor[T](), tag) }

// newShape returns the shape of a type, including the structs of its package inside it. It panics on a tag
// that cannot be enforced.
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

		optional := tag != "json" || strings.Contains(options, "omit")
		v := newField(f, name, !optional || f.Tag.Get("required") == "true")

		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}

		if inner.Kind() == reflect.Struct && inner.PkgPath() == t.PkgPath() {
			v.nested = newShape(inner, tag)
		}

		s.fields = append(s.fields, v)
	}

	return s
}

// newField returns a field with the rules of its tags.
func newField(f reflect.StructField, name string, required bool) field {
	v := field{
		name:         name,
		index:        f.Index,
		required:     required,
		format:       f.Tag.Get("format"),
		maxItems:     tagInt(f, "maxItems", "maxProperties"),
		keyMaxLength: tagInt(f, "keyMaxLength"),
	}

	bounds := []struct {
		tag string
		to  **int64
	}{{"minLength", &v.min}, {"minimum", &v.min}, {"maxLength", &v.max}, {"maximum", &v.max}}
	for _, bound := range bounds {
		if _, ok := f.Tag.Lookup(bound.tag); ok {
			n := int64(tagInt(f, bound.tag))
			*bound.to = &n
		}
	}

	if f.Type.Kind() == reflect.Int && (v.min == nil) != (v.max == nil) {
		panic("httpapi: field " + f.Name + " has only one of minimum and maximum")
	}

	if pattern := f.Tag.Get("pattern"); pattern != "" {
		v.pattern = regexp.MustCompile(pattern)
	}

	if enum := f.Tag.Get("enum"); enum != "" {
		v.enum = strings.Split(enum, ",")
	}

	return v
}

// hasRequired reports whether a field, at any depth, is required.
func (s *shape) hasRequired() bool {
	return slices.ContainsFunc(
		s.fields, func(f field) bool { return f.required || f.nested != nil && f.nested.hasRequired() },
	)
}

// tagInt returns the integer in the first of the tags that the field has, else 0.
func tagInt(f reflect.StructField, tags ...string) int {
	for _, tag := range tags {
		if text, ok := f.Tag.Lookup(tag); ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				panic("httpapi: field " + f.Name + " has the tag " + tag + ":" + text)
			}

			return n
		}
	}

	return 0
}

// check returns fault.Invalid for the first field of a decoded value that breaks a rule. The error's param is
// the field's path: "options[0].asset".
func (s *shape) check(v reflect.Value, path string) error {
	for i := range s.fields {
		f := &s.fields[i]
		if err := f.check(v.FieldByIndex(f.index), path+f.name); err != nil {
			return err
		}
	}

	return nil
}

// check checks one field. A pointer that is set counts as present, even if it points to a zero value.
func (f *field) check(v reflect.Value, path string) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return f.checkAbsent(path)
		}

		return f.checkValue(v.Elem(), path)
	}

	if v.IsZero() {
		return f.checkAbsent(path)
	}

	return f.checkValue(v, path)
}

// rejectEmpty returns fault.Invalid for the first string of a decoded JSON object that is empty and not free
// text. In the Go type it would look like an absent one.
func (s *shape) rejectEmpty(object map[string]any, path string) error { // spec D12.20
	for i := range s.fields {
		f := &s.fields[i]
		if err := f.rejectEmpty(object[f.name], path+f.name); err != nil {
			return err
		}
	}

	return nil
}

func (f *field) rejectEmpty(v any, path string) error {
	switch v := v.(type) {
	case string:
		if v == "" && !f.isFreeText() {
			return invalid(path, "%s is empty: leave it out, or give it a value", path)
		}
	case map[string]any:
		if f.nested != nil {
			return f.nested.rejectEmpty(v, path+".")
		}
	case []any:
		for i, entry := range v {
			if err := f.rejectEmpty(entry, path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	}

	return nil
}

// isFreeText reports whether a string of the field may be empty: it has no format and no least length.
func (f *field) isFreeText() bool {
	return f.pattern == nil && len(f.enum) == 0 && f.format == "" && (f.min == nil || *f.min == 0)
}

// checkAbsent returns parameter_missing when a required field is absent.
func (f *field) checkAbsent(path string) error {
	if f.required {
		return fault.Param(path, "parameter_missing", "%s is missing", path)
	}

	return nil
}

// checkValue checks a value that is present, and its entries.
func (f *field) checkValue(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.String:
		return f.checkText(v.String(), path)
	case reflect.Int, reflect.Int64:
		if n := v.Int(); f.min != nil && n < *f.min || f.max != nil && n > *f.max {
			return invalid(path, "%s must be %d to %d", path, *f.min, *f.max)
		}
	case reflect.Struct:
		if f.nested != nil {
			return f.nested.check(v, path+".")
		}
	case reflect.Slice:
		return f.checkList(v, path)
	case reflect.Map:
		return f.checkMap(v, path)
	}

	return nil
}

func (f *field) checkList(v reflect.Value, path string) error {
	if f.maxItems > 0 && v.Len() > f.maxItems {
		return invalid(path, "%s has %d entries, and %d is the most", path, v.Len(), f.maxItems)
	}

	for i := range v.Len() {
		if err := f.checkValue(v.Index(i), path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}

	return nil
}

func (f *field) checkMap(v reflect.Value, path string) error {
	if f.maxItems > 0 && v.Len() > f.maxItems {
		return invalid(path, "%s has %d keys, and %d is the most", path, v.Len(), f.maxItems)
	}

	for entry := v.MapRange(); entry.Next(); {
		key := entry.Key().String()
		if n := utf8.RuneCountInString(key); n < 1 || f.keyMaxLength > 0 && n > f.keyMaxLength {
			return invalid(path, "the keys of %s must have 1 to %d characters", path, f.keyMaxLength)
		}

		if err := f.checkText(entry.Value().String(), path+"."+key); err != nil {
			return err
		}
	}

	return nil
}

// checkText checks a string, or an entry of a list of strings.
func (f *field) checkText(s, path string) error {
	n := int64(utf8.RuneCountInString(s))
	switch {
	case f.max != nil && n > *f.max:
		return invalid(path, "%s has %d characters, and %d is the most", path, n, *f.max)
	case f.min != nil && n < *f.min:
		return invalid(path, "%s has %d characters, and %d is the least", path, n, *f.min)
	case len(f.enum) > 0 && !slices.Contains(f.enum, s): // spec D1.16
		return invalid(path, "%s is %q: it must be one of %s", path, truncate(s), strings.Join(f.enum, ", "))
	case f.pattern != nil && !f.pattern.MatchString(s):
		return invalid(path, "%s is %q, which does not match %s", path, truncate(s), f.pattern)
	}

	return nil
}

// invalid returns fault.Invalid with code parameter_invalid for the param.
func invalid(param, format string, args ...any) error {
	return fault.Param(param, "parameter_invalid", format, args...)
}

// truncate shortens a caller's text to 64 bytes for a message.
func truncate(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}

	return s
}
