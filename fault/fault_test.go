package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

func TestErrorIsFoundByWordAndCause(t *testing.T) {
	err := fmt.Errorf(
		"creating an invoice: %w",
		fault.Wrap(
			io.ErrUnexpectedEOF, fault.Unavailable, "price_unavailable", "no fresh price for %s",
			"ETH",
		),
	)
	if !errors.Is(err, fault.Unavailable) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("errors.Is does not find the word and the cause in %v", err)
	}

	if errors.Is(err, fault.Invalid) {
		t.Fatal("errors.Is finds a word that was not said")
	}

	if got := fault.Code(err); got != "price_unavailable" {
		t.Fatalf("Code = %q", got)
	}

	if got, want := err.Error(), "creating an invoice: no fresh price for ETH: unexpected EOF"; got != want {
		t.Fatalf("Error = %q, want %q", got, want)
	}
}

func TestErrorFallsBackToCodeAndWord(t *testing.T) {
	if got := (&fault.Error{Kind: fault.State, Code: "invoice_not_late"}).Error(); got != "invoice_not_late" {
		t.Fatalf("Error = %q", got)
	}

	if got := (&fault.Error{Kind: fault.State}).Error(); got != fault.State.Error() {
		t.Fatalf("Error = %q", got)
	}

	e := fault.New(fault.Limited, "rate_limited", "slow down")

	e.RetryAfter = time.Second
	if got := fault.RetryAfter(fmt.Errorf("x: %w", e)); got != time.Second {
		t.Fatalf("RetryAfter = %v", got)
	}
}
