package webhook

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/ssrf"
)

const day = 24 * time.Hour

func TestEndpointMoves(t *testing.T) {
	since := start.Add(-3 * day)

	type move func(Endpoint) Endpoint

	failed := func(ranOut, gone bool) move {
		return func(e Endpoint) Endpoint { return e.Failed(start, ranOut, gone) }
	}
	succeeded := func(e Endpoint) Endpoint { return e.Succeeded(start) }
	disabled := func(e Endpoint) Endpoint { return e.disabled(start) }

	enabled := func(e Endpoint) Endpoint { return e.enabled(start) }
	for _, c := range []struct {
		name         string
		before       Endpoint
		move         move
		status       EndpointStatus
		failing      time.Time
		firstFailure time.Time
		event        event.Type
	}{
		{"a success of an enabled one", Endpoint{Status: Enabled}, succeeded, Enabled, time.Time{}, time.Time{}, ""},
		{
			"a success ends a row of failures",
			Endpoint{Status: Enabled, FirstFailureAt: since},
			succeeded,
			Enabled,
			time.Time{},
			time.Time{},
			"",
		},
		{
			"a success of a failing one",
			Endpoint{Status: Failing, FailingSince: since, FirstFailureAt: since},
			succeeded,
			Enabled,
			time.Time{},
			time.Time{},
			"",
		},
		{
			"a late success does not enable a disabled one",
			Endpoint{Status: Disabled},
			succeeded,
			Disabled,
			time.Time{},
			time.Time{},
			"",
		},
		{
			"a failed try begins a row of failures",
			Endpoint{Status: Enabled},
			failed(false, false),
			Enabled,
			time.Time{},
			start,
			"",
		},
		{
			"a failed try goes on with a row of failures",
			Endpoint{Status: Enabled, FirstFailureAt: since},
			failed(false, false),
			Enabled,
			time.Time{},
			since,
			"",
		},
		{
			"a failure from before the last success",
			Endpoint{Status: Enabled, LastSuccessAt: start.Add(1)},
			failed(false, false),
			Enabled,
			time.Time{},
			time.Time{},
			"",
		},
		{
			"a delivery ran out",
			Endpoint{Status: Enabled, FirstFailureAt: since},
			failed(true, false),
			Failing,
			start,
			since,
			event.WebhookEndpointFailing,
		},
		{
			"another ran out",
			Endpoint{Status: Failing, FailingSince: since, FirstFailureAt: since},
			failed(true, false),
			Failing,
			since,
			since,
			"",
		},
		{
			"gone",
			Endpoint{Status: Enabled},
			failed(false, true),
			Disabled,
			time.Time{},
			start,
			event.WebhookEndpointDisabled,
		},
		{
			"gone while failing",
			Endpoint{Status: Failing, FailingSince: since, FirstFailureAt: since},
			failed(false, true),
			Disabled,
			since,
			since,
			event.WebhookEndpointDisabled,
		},
		{
			"just under five days of failures",
			Endpoint{Status: Enabled, FirstFailureAt: start.Add(-5*day + 1)},
			failed(false, false),
			Enabled,
			time.Time{},
			start.Add(-5*day + 1),
			"",
		},
		{
			"five days of failures",
			Endpoint{Status: Enabled, FirstFailureAt: start.Add(-5 * day)},
			failed(false, false),
			Disabled,
			time.Time{},
			start.Add(-5 * day),
			event.WebhookEndpointDisabled,
		},
		{
			"five days of failures while failing",
			Endpoint{Status: Failing, FailingSince: since, FirstFailureAt: start.Add(-5 * day)},
			failed(true, false),
			Disabled,
			since,
			start.Add(-5 * day),
			event.WebhookEndpointDisabled,
		},
		{
			"nothing moves a disabled one: failure",
			Endpoint{Status: Disabled},
			failed(true, false),
			Disabled,
			time.Time{},
			time.Time{},
			"",
		},
		{
			"nothing moves a disabled one: gone",
			Endpoint{Status: Disabled},
			failed(false, true),
			Disabled,
			time.Time{},
			time.Time{},
			"",
		},
		{
			"disabled by the merchant",
			Endpoint{Status: Enabled},
			disabled,
			Disabled,
			time.Time{},
			time.Time{},
			event.WebhookEndpointDisabled,
		},
		{
			"disabled while failing",
			Endpoint{Status: Failing, FailingSince: since},
			disabled,
			Disabled,
			since,
			time.Time{},
			event.WebhookEndpointDisabled,
		},
		{"disabled twice", Endpoint{Status: Disabled}, disabled, Disabled, time.Time{}, time.Time{}, ""},
		{
			"enabled again",
			Endpoint{Status: Disabled, FailingSince: since, FirstFailureAt: since},
			enabled,
			Enabled,
			time.Time{},
			time.Time{},
			"",
		},
		{
			"enabling a failing one",
			Endpoint{Status: Failing, FailingSince: since, FirstFailureAt: since},
			enabled,
			Failing,
			since,
			since,
			"",
		},
		{
			"enabling an enabled one",
			Endpoint{Status: Enabled, FirstFailureAt: since},
			enabled,
			Enabled,
			time.Time{},
			since,
			"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.before
			before.Sequence = 4

			after, events := c.move(before).withStatusEvent(before.Status)
			if after.Status != c.status || !after.FailingSince.Equal(c.failing) ||
				!after.FirstFailureAt.Equal(c.firstFailure) {
				t.Errorf(
					"moved to %s, failing since %s, first failure at %s",
					after.Status, after.FailingSince, after.FirstFailureAt,
				)
			}

			if moved := after.Status != before.Status; moved != after.UpdatedAt.Equal(start) {
				t.Errorf("updated at %s", after.UpdatedAt)
			}

			if c.event == "" {
				if len(events) != 0 || after.Sequence != 4 {
					t.Errorf("events %+v, sequence %d", events, after.Sequence)
				}

				return
			}

			if len(events) != 1 || events[0].Type != c.event || events[0].Sequence != 5 ||
				after.Sequence != 5 ||
				events[0].Previous["status"] != before.Status {
				t.Errorf("events %+v, sequence %d", events, after.Sequence)
			}
		})
	}
}

func TestLateResultsKeepTheLatestSuccess(t *testing.T) {
	e := Endpoint{Status: Enabled, LastSuccessAt: start, FirstFailureAt: start.Add(time.Hour)}
	if e = e.Succeeded(start.Add(-time.Hour)); !e.LastSuccessAt.Equal(start) || e.FirstFailureAt.IsZero() {
		t.Errorf("an older success made %+v", e)
	}

	e = Endpoint{Status: Enabled, FirstFailureAt: start}
	if e = e.Failed(start.Add(-time.Hour), false, false); !e.FirstFailureAt.Equal(start.Add(-time.Hour)) {
		t.Errorf("an older failure made %+v", e)
	}
}

// Requests to other ports could reach mail and name servers. A range that is opened has all ports.
func TestEndpointPorts(t *testing.T) {
	closed, open := ssrf.New(nil), ssrf.New([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})

	for _, c := range []struct {
		url  string
		with ssrf.Guard
		fine bool
	}{
		{"https://example.com:80/", closed, true},
		{"https://example.com:443/", closed, true},
		{"https://example.com:1024/", closed, true},
		{"https://example.com:65535/", closed, true},
		{"https://example.com:65536/", closed, false},
		{"https://example.com:0/", closed, false},
		{"https://example.com:25/", closed, false},
		{"https://example.com:1023/", closed, false},
		{"https://93.184.215.14:22/", open, false},
		{"https://10.1.2.3:22/", open, true},
	} {
		err := checkURL(c.url, true, c.with)
		if c.fine && err != nil {
			t.Errorf("%s: %v", c.url, err)
		}

		if !c.fine {
			wantFault(t, err, fault.Invalid, "url_not_allowed")
		}
	}
}

func TestEndpointURL(t *testing.T) {
	open := ssrf.New([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})
	for _, c := range []struct {
		url  string
		live bool
		code string // "" when it is fine
	}{
		{"https://example.com/hook?a=b", true, ""},
		{"https://example.com:8443/", true, ""},
		{"http://example.com/", false, ""},
		{"http://example.com/", true, "parameter_invalid"},
		{"https://93.184.215.14/", true, ""},
		{"https://[2606:2800:220:1::1]/", true, ""},
		{"https://10.1.2.3/", true, ""}, // allowed by configuration
		{"https://10.2.2.3/", true, "url_not_allowed"},
		{"https://127.0.0.1/", false, "url_not_allowed"},
		{"https://[::1]/", true, "url_not_allowed"},
		{"https://[::ffff:127.0.0.1]/", true, "url_not_allowed"},
		{"https://169.254.169.254/latest/meta-data", true, "url_not_allowed"},
		{"https://[fe80::1%25eth0]/", true, "url_not_allowed"},
		{"https://0x7f.1/", true, "parameter_invalid"},
		{"https://0x/", true, "parameter_invalid"},
		{"https://2130706433/", true, "parameter_invalid"},
		{"https://0177.0.0.1/", true, "parameter_invalid"},
		{"https://127.1./", true, "parameter_invalid"},
		{"https://example.com1/", true, ""},
		{"https://abc.0xyz/", true, ""},
		{"ftp://example.com/", false, "parameter_invalid"},
		{"https:///path", true, "parameter_invalid"},
		{"https://:443/", true, "parameter_invalid"},
		{"https:example.com", true, "parameter_invalid"},
		{"example.com/hook", true, "parameter_invalid"},
		{"", true, "parameter_invalid"},
		{"https://user:pass@example.com/", true, "parameter_invalid"},
		{"https://example.com/#part", true, "parameter_invalid"},
		{"https://example.com/#", true, "parameter_invalid"},
		{"https://exa mple.com/", true, "parameter_invalid"},
		{"https://example.com/\x7f", true, "parameter_invalid"},
		{"https://example.com/" + strings.Repeat("a", maxURL-len("https://example.com/")), true, ""},
		{"https://example.com/" + strings.Repeat("a", maxURL), true, "parameter_invalid"},
	} {
		err := checkURL(c.url, c.live, open)
		if c.code == "" {
			if err != nil {
				t.Errorf("%q (live %v): %v", c.url, c.live, err)
			}

			continue
		}

		wantFault(t, err, fault.Invalid, c.code)
	}
}

func TestEndpointEvents(t *testing.T) {
	for _, c := range []struct{ given, want []event.Type }{
		{[]event.Type{"*"}, []event.Type{"*"}},
		{
			[]event.Type{event.InvoicePaid, event.PayoutFailed, event.InvoicePaid},
			[]event.Type{event.InvoicePaid, event.PayoutFailed},
		},
		{nil, nil},
		{[]event.Type{}, nil},
		{[]event.Type{"*", event.InvoicePaid}, nil},
		{[]event.Type{"*", "*"}, nil},
		{[]event.Type{"invoice.*"}, nil},
		{[]event.Type{event.Ping}, nil},
		{[]event.Type{event.TransactionMoved}, nil},
		{[]event.Type{""}, nil},
	} {
		got, err := checkEvents(c.given)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v became %v", c.given, got)
		}

		if c.want == nil {
			wantFault(t, err, fault.Invalid, "parameter_invalid")
		} else if err != nil {
			t.Errorf("%v: %v", c.given, err)
		}
	}
}

// A delivery is due since its attempt is; one that was never tried, since it was made, however often it was put off.
func TestDueSince(t *testing.T) {
	made := time.Unix(1e9, 0)
	next := made.Add(time.Hour)

	for _, test := range []struct {
		name     string
		status   DeliveryStatus
		attempts int
		now      time.Time
		since    time.Time
		due      bool
	}{
		{"never tried", DeliveryPending, 0, made, made, true},
		{"never tried, not made yet", DeliveryPending, 0, made.Add(-1), made, false},
		{"put off", DeliveryPending, 0, next.Add(-1), made, true},
		{"tried, due", DeliveryPending, 1, next, next, true},
		{"tried, not due", DeliveryPending, 1, next.Add(-1), next, false},
		{"succeeded", DeliverySucceeded, 1, next, next, false},
		{"failed", DeliveryFailed, 10, next, next, false},
	} {
		d := Delivery{Status: test.status, Attempts: test.attempts, CreatedAt: made, NextAttemptAt: next}
		if since, due := d.DueSince(test.now); due != test.due || !since.Equal(test.since) {
			t.Errorf("%s: since %s, due %v", test.name, since, due)
		}
	}
}
