package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
)

func TestStatusFollowsFromTheWord(t *testing.T) {
	secret := errors.New("dsn postgres://user:hunter2@db")
	for _, test := range []struct {
		err    error
		status int
		kind   string
		code   string
	}{
		{fault.Param("amount", "amount_too_small", "x"), 422, "invalid_request", "amount_too_small"},
		{
			fmt.Errorf("creating: %w", fault.Param("q", "parameter_invalid", "x")),
			400,
			"invalid_request",
			"parameter_invalid",
		},
		{fault.New(fault.Invalid, "body_too_large", "x"), 413, "invalid_request", "body_too_large"},
		{fault.New(fault.Invalid, "content_type_unsupported", "x"), 415, "invalid_request", "content_type_unsupported"},
		{fault.New(fault.Unauthenticated, "api_key_invalid", "x"), 401, "authentication", "api_key_invalid"},
		{fault.New(fault.Forbidden, "scope_missing", "x"), 403, "permission", "scope_missing"},
		{fault.Missing("invoice", "1"), 404, "not_found", "resource_missing"},
		{fault.New(fault.State, "invoice_not_late", "x"), 409, "conflict", "invoice_not_late"},
		{fault.New(fault.State, "insufficient_balance", "x"), 422, "invalid_request", "insufficient_balance"},
		{fault.Wrap(secret, fault.Conflict, "", ""), 409, "conflict", "changed_meanwhile"},
		{fault.Conflict, 409, "conflict", "changed_meanwhile"},
		{
			fault.New(fault.Conflict, "idempotency_request_in_progress", "x"),
			409,
			"idempotency",
			"idempotency_request_in_progress",
		},
		{fault.New(fault.Forbidden, "idempotency_key_not_yours", "x"), 403, "idempotency", "idempotency_key_not_yours"},
		{fault.New(fault.Invalid, "idempotency_key_reused", "x"), 422, "idempotency", "idempotency_key_reused"},
		{fault.New(fault.Invalid, "idempotency_key_required", "x"), 400, "idempotency", "idempotency_key_required"},
		{fault.New(fault.Limited, "rate_limited", "x"), 429, "rate_limited", "rate_limited"},
		{fault.New(fault.Unavailable, "price_unavailable", "no fresh price"), 503, "unavailable", "price_unavailable"},
		{
			fault.Wrap(secret, fault.Unavailable, "node_unavailable", "dsn hunter2"),
			503,
			"unavailable",
			"service_unavailable",
		},
		{fault.Wrap(secret, fault.Stopped, "node_pruned", "hunter2"), 503, "unavailable", "service_unavailable"},
		{fault.New(fault.State, "invoice_not_open", "x"), 409, "conflict", "invoice_not_open"},
		{fault.New(fault.Conflict, "quote_expired", "hunter2"), 409, "conflict", "changed_meanwhile"},
		{fault.New(fault.Duplicate, "", "hunter2"), 409, "conflict", "changed_meanwhile"},
		{
			fault.New(fault.Conflict, "idempotency_request_in_progress", "x"),
			409,
			"idempotency",
			"idempotency_request_in_progress",
		},
		{context.DeadlineExceeded, 503, "unavailable", "service_unavailable"},
		{secret, 500, "api_error", "internal_error"},
	} {
		p := problemOf(test.err)
		if p.status != test.status || string(p.kind) != test.kind || p.code != test.code || p.message == "" {
			t.Errorf("%v: %+v", test.err, p)
		}

		if strings.Contains(p.message+p.param, "hunter2") {
			t.Errorf("%v: the answer shows what is for the log: %s", test.err, p.message)
		}
	}
}

// testServer serves one operation without any key.
func testServer(log *strings.Builder, read func(ctx context.Context, c *call) (any, error)) *server {
	s := &server{
		options: (&Options{}).withDefaults(),
		ids:     id.New(nil, nil),
		log:     slog.New(slog.NewTextHandler(log, nil)),
	}
	op := get(
		operation{id: "x", path: "/v1/x", access: noKey},
		func(context.Context, *call, none) (none, error) { return none{}, nil },
	)
	op.read = read
	s.route([]operation{op})

	return s
}

func TestAPanicIsA500AndOnlyLogged(t *testing.T) {
	var log strings.Builder
	for name, read := range map[string]func(context.Context, *call) (any, error){
		"panic":   func(context.Context, *call) (any, error) { panic("hunter2") },
		"error":   func(context.Context, *call) (any, error) { return nil, errors.New("hunter2") },
		"no JSON": func(context.Context, *call) (any, error) { return func() {}, nil },
	} {
		log.Reset()

		w := httptest.NewRecorder()
		testServer(&log, read).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/x", http.NoBody))

		id := w.Header().Get("Request-Id")
		if w.Code != 500 || strings.Contains(w.Body.String(), "hunter2") ||
			!strings.Contains(w.Body.String(), id) ||
			!strings.Contains(log.String(), id) {
			t.Errorf("%s: status %d, %s\nlog: %s", name, w.Code, w.Body, log.String())
		}
	}

	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Error("http.ErrAbortHandler does not reach net/http")
		}
	}()

	testServer(&log, func(context.Context, *call) (any, error) { panic(http.ErrAbortHandler) }).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/x", http.NoBody))
}
