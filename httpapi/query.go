package httpapi

import (
	"cmp"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/paging"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// maxParam bounds starting_after and a path id, in characters.
const maxParam = 100 // spec 4.1.4

// readQuery decodes the query string into c.query, c.limit and c.after. Its errors are fault.Invalid with the
// codes parameter_unknown, parameter_invalid and parameter_missing.
func (c *call) readQuery(r *http.Request) error {
	c.query, c.limit = c.op.query.zero(), paging.Default

	var values url.Values

	if r.URL.RawQuery != "" {
		var err error
		if values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			return fault.Wrap(
				err, fault.Invalid, "parameter_invalid",
				"the query string cannot be read: escape every special character as %%XX",
			)
		}
	}

	for name, all := range values {
		if err := c.checkParam(name, all); err != nil {
			return err
		}

		values[name] = []string{strings.Join(all, ",")}
	}

	for i := range c.op.query.fields {
		f := &c.op.query.fields[i]
		if err := f.readQuery(c.query.FieldByIndex(f.index), values.Get(f.name)); err != nil {
			return err
		}
	}

	if text := values.Get("limit"); text != "" && c.op.paged {
		var err error

		c.limit, err = strconv.Atoi(text)
		if err != nil || c.limit < paging.Least || c.limit > paging.Most { // spec D11.15
			return invalid("limit", "limit is %q: it must be 1 to %d", truncate(text), paging.Most)
		}
	}

	if !c.op.paged {
		return nil
	}

	cursor := values.Get("starting_after")

	delete(values, "limit")
	delete(values, "starting_after")
	c.list = c.nameList(values)

	return c.readCursor(cursor)
}

// checkParam checks that the operation has the query parameter, and that it is given once and is text.
func (c *call) checkParam(name string, values []string) error { // spec D1.10
	if !c.hasParam(name) {
		return fault.Param(
			cmp.Or(truncate(name), emptyName), "parameter_unknown",
			"there is no query parameter %q here",
			truncate(name),
		)
	}

	if len(values) != 1 && !c.isList(name) {
		return invalid(name, "%s is given %d times: give it once", name, len(values))
	}

	for _, value := range values {
		if value == "" || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return invalid(name, "%s is empty or not text: leave it out or give it a value", name)
		}
	}

	return nil
}

// isList reports whether the query parameter takes several values, separated by commas or given one by one.
func (c *call) isList(name string) bool {
	i := slices.IndexFunc(c.op.query.fields, func(f field) bool { return f.name == name })

	return i >= 0 && c.query.FieldByIndex(c.op.query.fields[i].index).Kind() == reflect.Slice
}

// hasParam reports whether the operation has the query parameter.
func (c *call) hasParam(name string) bool {
	if c.op.paged && (name == "limit" || name == "starting_after") {
		return true
	}

	return slices.ContainsFunc(c.op.query.fields, func(f field) bool { return f.name == name })
}

// readQuery sets one field from its text, which is "" when the parameter is absent.
func (f *field) readQuery(v reflect.Value, text string) error { // spec 4.1.8
	if text == "" {
		return f.checkAbsent(f.name)
	}

	if _, isTime := v.Interface().(time.Time); isTime {
		t, err := wire.ParseTime(f.name, text)
		if err != nil && strings.Contains(text, " ") { // + stands for a space in a query string
			return invalid(
				f.name,
				"%q is not a timestamp: write the + of an offset as %%2B in a URL, or the time in UTC, with Z",
				truncate(text),
			)
		}

		if err != nil {
			return err
		}

		if t.IsZero() { // a store reads the zero time as no bound
			t = t.Add(time.Nanosecond)
		}

		v.Set(reflect.ValueOf(t))

		return nil
	}

	if v.Kind() != reflect.Slice {
		v.SetString(text)
		return f.checkText(text, f.name)
	}

	// A list's maxLength bounds its whole text; each entry is checked below.
	if f.max != nil && int64(len(text)) > *f.max {
		return invalid(f.name, "%s has more than %d characters", f.name, *f.max)
	}

	parts := strings.Split(text, ",")
	v.Set(reflect.MakeSlice(v.Type(), len(parts), len(parts)))

	for i, part := range parts {
		if part == "" {
			return invalid(f.name, "%s has an empty entry", f.name)
		}

		if err := f.checkText(part, f.name); err != nil {
			return err
		}

		v.Index(i).SetString(part)
	}

	return nil
}
