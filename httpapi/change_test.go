package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// What was prepared and does not hold any more is prepared again, and nothing else is.
func TestAChangeIsPreparedAgain(t *testing.T) {
	stale := fault.New(fault.Conflict, "quote_expired", "the quote ran out")
	for _, test := range []struct {
		name           string
		err            error
		times          int // it comes
		status, wanted int // status, and preparations
	}{
		{"nothing", nil, 0, 200, 1},
		{"a conflict", stale, 1, 200, 2},
		{"a taken address", fmt.Errorf("storing: %w", fault.Duplicate), 3, 200, 4},
		{"a price that was not read", fmt.Errorf("the price: %w", invoice.ErrUnprepared), 2, 200, 3},
		{"a conflict without end", stale, 100, 409, changeTries},
		{"a rival with the same key", fault.New(fault.Conflict, "idempotency_request_in_progress", "x"), 100, 409, 1},
		{"another refusal", fault.New(fault.State, "invoice_not_open", "x"), 100, 409, 1},
		{"a bug", errors.New("bug"), 100, 500, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			prepared := 0
			op := write(
				operation{id: "x", method: "POST", path: "/v1/x", access: noKey},
				func(context.Context, *call, none) (commit[none], error) {
					prepared++
					n := prepared

					return func(context.Context, payments.Tx) (none, error) {
						if n <= test.times {
							return none{}, test.err
						}

						return none{}, nil
					}, nil
				},
			)

			var log strings.Builder

			s := testServer(&log, nil)
			s.answers.Update = func(ctx context.Context, f func(context.Context, payments.Tx) error) error {
				return f(ctx, nil)
			}
			s.route([]operation{op})

			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/x", http.NoBody))

			if w.Code != test.status || prepared != test.wanted {
				t.Errorf(
					"status %d, want %d, after %d preparations, want %d: %s",
					w.Code, test.status, prepared, test.wanted, w.Body,
				)
			}
		})
	}
}
