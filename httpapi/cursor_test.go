package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// nextInvoices makes three invoices and returns the cursor of the first page of one.
func (s *shop) nextInvoices(t *testing.T) string {
	t.Helper()

	for range 3 {
		s.post(t, "/v1/invoices", invoiceBody)
	}

	return s.get(t, "/v1/invoices?limit=1")["next_cursor"].(string)
}

func nextPage(cursor string) request {
	return request{method: "GET", path: "/v1/invoices?limit=1&starting_after=" + url.QueryEscape(cursor)}
}

// TestAnAlteredCursorIsRefused changes each byte of a cursor, and its form.
func TestAnAlteredCursorIsRefused(t *testing.T) {
	s := open(t, nil)
	cursor := s.nextInvoices(t)
	s.ok(t, s.do(t, nextPage(cursor)))

	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}

	altered := []string{cursor + "A", cursor[:len(cursor)-1], cursor + "="}

	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		altered = append(altered, base64.RawURLEncoding.EncodeToString(changed))
	}

	for _, text := range altered {
		f := s.do(t, nextPage(text)).refused(t, 400)
		if f.Code != "parameter_invalid" || f.Param != "starting_after" {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

// TestACursorIsOfOneAccountAndMode sends a cursor with keys of other lists.
func TestACursorIsOfOneAccountAndMode(t *testing.T) {
	s := open(t, nil)
	q := nextPage(s.nextInvoices(t))

	q.key = s.newKey(t, account.KeyParams{Livemode: true})
	s.do(t, q).refused(t, 400)

	q.key = s.newKey(t, account.KeyParams{})
	s.ok(t, s.do(t, q))

	s.enter(t)

	q.key = s.key
	s.do(t, q).refused(t, 400)
}

// TestACursorOutlivesARotationOfTheSecretKey reads on with another first key, as long as the old one is configured.
func TestACursorOutlivesARotationOfTheSecretKey(t *testing.T) {
	old, fresh := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	db := memory.New()

	s := boot(t, db, nil, time.Now, old)
	s.enter(t)

	cursor := s.nextInvoices(t)

	rotated := boot(t, db, nil, time.Now, fresh, old)
	rotated.account, rotated.key = s.account, s.key
	rotated.ok(t, rotated.do(t, nextPage(cursor)))

	// One of the new key is none to a process that has the old key alone.
	cursor = rotated.get(t, "/v1/invoices?limit=1")["next_cursor"].(string)
	s.do(t, nextPage(cursor)).refused(t, 400)
}
