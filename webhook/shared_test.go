package webhook

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func wantFault(t *testing.T, err, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || fault.Code(err) != code {
		t.Errorf("error is %v (code %q), want %v with code %q", err, fault.Code(err), word, code)
	}
}
