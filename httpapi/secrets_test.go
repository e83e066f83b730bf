package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/store/sqlite"
)

func TestNoSecretIsLoggedOrShown(t *testing.T) {
	s := open(t, nil)
	endpoint := s.post(t, "/v1/webhook_endpoints", `{"url":"http://127.0.0.1:1/","events":["*"]}`)
	secret := endpoint["secret"].(string)

	var shown strings.Builder

	for _, q := range []request{
		{method: "GET", path: "/v1/webhook_endpoints"},
		{method: "GET", path: "/v1/webhook_endpoints/" + endpoint["id"].(string)},
		{method: "GET", path: "/v1/events"},
		{method: "GET", path: "/v1/invoices", key: s.key + "x"},
		{method: "POST", path: "/v1/invoices", body: `{"` + s.key + `":1`},
		{method: "GET", path: "/v1/openapi.json"},
	} {
		r := s.do(t, q)
		if !strings.HasPrefix(q.body, `{"`+s.key) {
			shown.Write(r.body)
		}
	}

	for name, text := range map[string]string{"log": s.logs.String(), "answers": shown.String()} {
		for _, hidden := range []string{s.key, s.key[len("pay_test_sk_"):], secret} {
			if strings.Contains(text, hidden) {
				t.Errorf("the %s hold a secret", name)
			}
		}
	}
}

// The bytes of a database, its write-ahead log included, hold no API key and no signing secret in
// any usual writing: not where they belong, and not in the stored answers that showed them.
func TestNoSecretIsStored(t *testing.T) {
	dir := t.TempDir()

	db, err := sqlite.Open(filepath.Join(dir, "payments.db"))
	if err != nil {
		t.Fatal(err)
	}

	s := openOn(t, db, nil, time.Now)
	q := request{
		method: "POST",
		path:   "/v1/webhook_endpoints",
		header: header("Idempotency-Key", "an-endpoint"),
		body:   `{"url":"http://127.0.0.1:1/somewhere-to-be-found","events":["*"]}`,
	}
	endpoint := s.ok(t, s.do(t, q))
	rotate := request{
		method: "POST",
		path:   "/v1/webhook_endpoints/" + endpoint["id"].(string) + "/rotate_secret",
		header: header("Idempotency-Key", "a-rotation"),
	}
	rotated := s.ok(t, s.do(t, rotate))
	invoice := s.do(
		t,
		request{
			method: "POST",
			path:   "/v1/invoices",
			header: header("Idempotency-Key", "an-invoice"),
			body:   invoiceBody,
		},
	)
	s.ok(t, invoice)
	s.post(t, "/v1/webhook_endpoints/"+endpoint["id"].(string)+"/test", "")

	look := func(when string) {
		t.Helper()

		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}

		var stored []byte

		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			stored = append(stored, raw...)
		}

		for _, known := range []string{"somewhere-to-be-found", "an-endpoint", "a-rotation"} {
			if !bytes.Contains(stored, []byte(known)) {
				t.Errorf(
					"%s: %q is not found among %d bytes, so that nothing would be",
					when, known, len(stored),
				)
			}
		}

		if bytes.Contains(stored, invoice.body) {
			t.Errorf("%s: a stored answer can be read", when)
		}

		for name, secret := range map[string]string{
			"API key":        s.key,
			"signing secret": endpoint["secret"].(string),
			"rotated secret": rotated["secret"].(string),
		} {
			random := secret[strings.LastIndexByte(secret, '_')+1:]
			for _, written := range []string{
				secret,
				random,
				hex.EncodeToString([]byte(random)),
				base64.StdEncoding.EncodeToString([]byte(random)),
			} {
				if bytes.Contains(stored, []byte(written)) {
					t.Errorf("%s: the database holds the %s as %q", when, name, written[:4]+"…")
				}
			}
		}
	}
	look("while the service runs")

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	look("afterwards")
}
