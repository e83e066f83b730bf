package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/event"
	faults "github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Config.SecretKey is changed under a running service, step by step as docs/api.md says: nothing
// that was sealed is lost.
func TestSecretKeyRotation(t *testing.T) { stores(t, testSecretKeyRotation) }

func testSecretKeyRotation(t *testing.T, db payments.Store) {
	type delivery struct {
		header http.Header
		body   []byte
	}

	received := make(chan delivery, 16)
	merchant := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- delivery{r.Header, body}
	}))
	t.Cleanup(merchant.Close)

	old, fresh := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	now := time.Now()
	clock := func() time.Time { return now }

	// The service runs with the old key: an answer is stored, and two signing secrets, one of which
	// is being replaced.
	s := boot(t, db, nil, clock, old)
	s.enter(t)

	create := request{
		method: "POST",
		path:   "/v1/webhook_endpoints",
		header: header("Idempotency-Key", "endpoint"),
		body:   `{"url":"` + merchant.URL + `","events":["payout.created"]}`,
	}
	stored := s.do(t, create)
	endpoint := s.ok(t, stored)
	id, first := endpoint["id"].(string), endpoint["secret"].(string)
	second := s.post(t, "/v1/webhook_endpoints/"+id+"/rotate_secret", `{"overlap_hours":168}`)["secret"].(string)
	refusal := request{
		method: "POST",
		path:   "/v1/invoices",
		header: header("Idempotency-Key", "refused"),
		body:   strings.Replace(invoiceBody, "SIM", "GOLD", 1),
	}
	s.do(t, refusal).refused(t, 422)

	// works checks that a process gives the stored answers and signs with the stored secrets.
	works := func(name string, s *shop) {
		t.Helper()

		if again := s.do(
			t, create,
		); again.header.Get("Idempotent-Replayed") != "true" ||
			!bytes.Equal(again.body, stored.body) {
			t.Errorf("%s: the stored answer is %d %s", name, again.status, again.body)
		}

		if again := s.do(
			t, refusal,
		); again.header.Get("Idempotent-Replayed") != "true" ||
			again.status != 422 {
			t.Errorf("%s: the stored refusal is %d %s", name, again.status, again.body)
		}
	}
	signs := func(name string, s *shop) {
		t.Helper()
		s.post(t, "/v1/webhook_endpoints/"+id+"/test", "")

		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()

		ended := make(chan error, 1)
		go func() { ended <- internal.Of(s.engine).Deliverer.Run(ctx) }()

		select {
		case d := <-received:
			for _, secret := range []string{first, second} {
				if err := webhook.VerifyAt(
					d.body, d.header.Get("Service-Signature"), now, secret,
				); err != nil {
					t.Errorf("%s: the delivery does not verify: %v", name, err)
				}
			}
		case <-ctx.Done():
			t.Errorf("%s: nothing is delivered\n%s", name, s.logs)
		}

		stop()

		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	at := func(secrets ...[]byte) *shop {
		t.Helper()
		next := boot(t, db, nil, clock, secrets...)
		next.account, next.key = s.account, s.key

		return next
	}

	works("the old key", s)
	signs("the old key", s)

	// First every process learns to open what the new key seals, then every process seals with it.
	learned, turned := at(old, fresh), at(fresh, old)
	works("the old key, knowing the new one", learned)
	works("the new key, knowing the old one", turned)
	signs("the new key, knowing the old one", turned)

	byNew := request{
		method: "POST",
		path:   "/v1/invoices",
		header: header("Idempotency-Key", "new"),
		body:   invoiceBody,
	}
	sealed := turned.do(t, byNew)
	turned.ok(t, sealed)

	if again := learned.do(t, byNew); !bytes.Equal(again.body, sealed.body) {
		t.Errorf("a process that still seals with the old key answers %s", again.body)
	}

	// Without the old key, what it sealed is out of reach, and is said to be so without giving anything away.
	tooSoon := at(fresh)
	tooSoon.do(t, create).refused(t, http.StatusServiceUnavailable)

	if !strings.Contains(tooSoon.logs.String(), "add that key") {
		t.Errorf("the log does not say what to do: %s", tooSoon.logs)
	}

	if _, err := tooSoon.engine.Reseal(t.Context()); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("sealing anew what does not open: %v", err)
	}

	// Signing secrets are sealed anew; a day later no stored answer of the old key counts any more.
	for range 2 {
		if done, err := turned.engine.Reseal(t.Context()); done < 1 || err != nil {
			t.Fatalf("%d rows, %v", done, err)
		}
	}

	now = now.Add(25 * time.Hour)
	after := at(fresh)
	signs("the new key alone", after)

	if again := after.do(t, create); again.status != 200 || again.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("a day later: %d %s", again.status, again.body)
	}
}

// TestAddressesAreResealed: after Reseal the addresses of more than one batch are known without the old key.
func TestAddressesAreResealed(t *testing.T) {
	stores(t, func(t *testing.T, db payments.Store) {
		old, fresh := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
		s := boot(t, db, nil, time.Now, old)
		s.enter(t)

		const count = 501
		for range count {
			s.deposit(t, s.account.ID)
		}

		verify := func(s *shop) (codes map[string]int) {
			t.Helper()

			all, err := db.AddressesAfter(t.Context(), s.network.Network().Space(), "", 2*count)
			if err != nil {
				t.Fatal(err)
			}

			codes = map[string]int{}

			for _, a := range all {
				if a.Kind == invoice.ForDeposit {
					_, err := s.engine.Invoices.VerifyAddress(a)
					codes[faults.Code(err)]++
				}
			}

			return codes
		}

		after := boot(t, db, nil, time.Now, fresh)
		if got := verify(after); got["secret_key_unknown"] != count {
			t.Fatalf("before Reseal: %v", got)
		}

		if n, err := boot(
			t,
			db,
			nil,
			time.Now,
			fresh,
			old,
		).engine.Reseal(
			t.Context(),
		); err != nil ||
			n < count {
			t.Fatalf("Reseal changed %d rows: %v", n, err)
		}

		if got := verify(after); got[""] != count {
			t.Errorf("after Reseal: %v", got)
		}

		if n, err := after.engine.Reseal(t.Context()); err != nil || n != 0 {
			t.Errorf("a second Reseal changed %d rows: %v", n, err)
		}
	})
}

// deposit returns a new deposit address of an account.
func (s *shop) deposit(t *testing.T, accountID string) invoice.DepositAddress {
	t.Helper()

	d, err := s.engine.Invoices.CreateDeposit(
		t.Context(), invoice.DepositParams{Owner: event.Owner{AccountID: accountID}, Network: "simnet"},
	)
	if err != nil {
		t.Fatal(err)
	}

	return d
}
