package walletstate

import (
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// WaitShownAfter is the time after which a transaction that waits is shown as waiting.
const WaitShownAfter = time.Minute // spec D12.6

// Wait records why a transaction that is Queued, or in no block, did not advance, once it has been due for
// WaitShownAfter. why is a code, a colon and a sentence. While the code stays the same, the record does not
// change.
func Wait(t *wallet.Transaction, why string, now time.Time) {
	since := waitsSince(t)
	if since.IsZero() || now.Sub(since) < WaitShownAfter || why == "" {
		return
	}

	if t.Waits == "" || waitCode(t.Waits) != waitCode(why) {
		t.Waits = why
	}

	t.WaitingSince = since
}

// WaitForBlock is Wait for a transaction that is signed and in no block, unless another reason is recorded.
func WaitForBlock(t *wallet.Transaction, now time.Time) {
	if t.State != wallet.Signed && t.State != wallet.Broadcast || t.BatchedBy != "" {
		return
	}

	switch problem := LastAttempt(t).LastSendError; {
	case problem != "":
		Wait(t, "not_taken: the network does not take the transaction: "+problem, now)
	case t.Waits == "" || waitCode(t.Waits) == "not_taken":
		Wait(t, "no_block: the transaction is signed and was sent, and no block holds it yet", now)
	}
}

// endWait clears the reason for waiting, because the transaction moved.
func endWait(t *wallet.Transaction) { t.Waits, t.WaitingSince = "", time.Time{} }

// waitsSince returns the time since which a transaction has waited for its signature or its block; zero if it
// waits for neither.
func waitsSince(t *wallet.Transaction) time.Time {
	switch t.State {
	case wallet.Queued:
		if t.ReadyAt.IsZero() {
			return t.CreatedAt
		}

		return t.ReadyAt
	case wallet.Signed, wallet.Broadcast:
		if len(t.Attempts) > 0 {
			return t.Attempts[0].SignedAt
		}
	case wallet.Included, wallet.Confirmed, wallet.Failed:
		// Only finality is still missing.
	}

	return time.Time{}
}

// waitCode returns the code of a reason.
func waitCode(why string) string {
	code, _, _ := strings.Cut(why, ":")
	return code
}
