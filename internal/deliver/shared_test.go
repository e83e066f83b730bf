package deliver

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	secretA = "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
	secretB = "whsec_QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="

	day = 24 * time.Hour

	// maxEndpoints is how many endpoints an account may have in each mode; the service refuses more.
	maxEndpoints = 16
)

var (
	start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	// schedule is that of decisions part 8.
	schedule = []time.Duration{
		5 * time.Second,
		5 * time.Minute,
		30 * time.Minute,
		2 * time.Hour,
		5 * time.Hour,
		10 * time.Hour,
		10 * time.Hour,
		24 * time.Hour,
		24 * time.Hour,
	}
	disableAfter = 5 * day
)

func wantFault(t *testing.T, err, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || fault.Code(err) != code {
		t.Errorf("error is %v (code %q), want %v with code %q", err, fault.Code(err), word, code)
	}
}
