package httpapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

const (
	defaultLimit = 50
	maxLimit     = 100
	maxParam     = 100 // characters of starting_after and of a path id
	hashSize     = 9   // bytes of the filters' hash in a cursor
)

// readQuery decodes the query string into c.query, c.limit and c.after. Unknown and repeated
// parameters are refused.
func (c *call) readQuery(r *http.Request) error {
	c.query, c.limit = c.op.query.zero(), defaultLimit

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
		if !c.knows(name) {
			return fault.Param(
				cmp.Or(clip(name), emptyName), "parameter_unknown",
				"there is no query parameter %q here",
				clip(name),
			)
		}

		if len(all) != 1 {
			return invalid(
				name,
				"%s is given %d times: give it once, with several values separated by commas where that is allowed",
				name,
				len(all),
			)
		}

		if all[0] == "" || !utf8.ValidString(all[0]) || strings.ContainsRune(all[0], 0) {
			return invalid(name, "%s is empty or not text: leave it out or give it a value", name)
		}
	}

	for i := range c.op.query.fields {
		f := &c.op.query.fields[i]
		if err := f.readQuery(c.query.FieldByIndex(f.index), values.Get(f.name)); err != nil {
			return err
		}
	}

	if s := values.Get("limit"); s != "" && c.op.paged {
		var err error

		c.limit, err = strconv.Atoi(s)
		if err != nil || c.limit < 1 || c.limit > maxLimit {
			return invalid("limit", "limit is %q: it must be 1 to %d", clip(s), maxLimit)
		}
	}

	c.filters = c.hashFilters(values)

	return c.readCursor(values.Get("starting_after"))
}

func (c *call) knows(name string) bool {
	if c.op.paged && (name == "limit" || name == "starting_after") {
		return true
	}

	for i := range c.op.query.fields {
		if c.op.query.fields[i].name == name {
			return true
		}
	}

	return false
}

// readQuery sets one field from its text, "" when it was left out.
func (f *field) readQuery(v reflect.Value, text string) error {
	if text == "" {
		return f.absent(f.name)
	}

	switch v.Interface().(type) {
	case time.Time:
		t, err := wire.ParseTime(f.name, text)
		if err != nil {
			return err
		}

		v.Set(reflect.ValueOf(t))

		return nil
	}

	if v.Kind() != reflect.Slice {
		v.SetString(text)
		return f.text(text, f.name)
	}
	// The bound of a list is that of its whole text; its entries are checked one by one.
	if f.max != nil && int64(len(text)) > *f.max {
		return invalid(f.name, "%s has more than %d characters", f.name, *f.max)
	}

	parts := strings.Split(text, ",")
	v.Set(reflect.MakeSlice(v.Type(), len(parts), len(parts)))

	for i, part := range parts {
		if part == "" {
			return invalid(f.name, "%s has an empty entry", f.name)
		}

		if err := f.text(part, f.name); err != nil {
			return err
		}

		v.Index(i).SetString(part)
	}

	return nil
}

// hashFilters names the list that a cursor belongs to: operation, path and filters, without limit and cursor.
func (c *call) hashFilters(values url.Values) [hashSize]byte {
	if !c.op.paged {
		return [hashSize]byte{}
	}

	delete(values, "limit")
	after := values["starting_after"]
	delete(values, "starting_after")

	h := sha256.Sum256([]byte(c.op.id + "\x00" + c.path + "\x00" + values.Encode()))
	if after != nil {
		values["starting_after"] = after
	}

	return [hashSize]byte(h[:hashSize])
}

// cursor returns the opaque text that continues the call's list after a place.
func (c *call) cursor(last string) string {
	return base64.RawURLEncoding.EncodeToString(append(c.filters[:], last...))
}

// readCursor sets c.after from a cursor that this list gave out.
func (c *call) readCursor(s string) error {
	if s == "" {
		return nil
	}

	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(s) > maxParam || len(raw) <= hashSize || !printable(raw[hashSize:]) {
		return invalid(
			"starting_after",
			"starting_after is not a cursor: pass the next_cursor of the page before, unchanged",
		)
	}

	if [hashSize]byte(raw) != c.filters {
		return invalid(
			"starting_after",
			"starting_after belongs to another list: send the same filters with every page",
		)
	}

	c.after = string(raw[hashSize:])

	return nil
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < '!' || c > '~' {
			return false
		}
	}

	return true
}
