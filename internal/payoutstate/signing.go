package payoutstate

import (
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/payout"
)

// signingSlack is how long after GiveUpAfter signing may still be under way.
const signingSlack = time.Minute

// CheckSigning refuses bytes that could be included in addition to earlier ones, once the payout is older
// than GiveUpAfter: by then it is signed, or has failed as stale. Before that, the caller looks for it on the
// network.
//
// Errors: fault.Forbidden, code payout_signed_already.
func CheckSigning(p payout.Payout, spends []string, now time.Time) error {
	if p.Replaces(spends) || now.Before(p.CreatedAt.Add(payout.GiveUpAfter+signingSlack)) {
		return nil
	}

	return fault.New(
		fault.Forbidden, "payout_signed_already",
		"payout %s is of %s: what is signed now has to replace what was signed then",
		p.ID, p.CreatedAt.Format(time.RFC3339),
	)
}
