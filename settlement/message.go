package settlement

import (
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// messages explain the reasons to people: what happened, and what to do next.
var messages = map[Reason]string{
	InsufficientMasterBalance: "The master wallet cannot pay for the release. Top it up to required_native; the " +
		"release is tried every minute.",
	Uneconomic: "The release would cost too large a share of what it moves. It is tried again as the fees fall or " +
		"more arrives at the address.",
	BelowSweepMin: "The address holds less than the account's sweep_min_usd. It is released with what arrives later.",

	PaymentOrphaned: "The payment left the chain. It is released once it is confirmed again.",
	FundsMissing: "The deposit is no longer at its address, and no recorded release moved it. Find out who else has " +
		"the key of the address.",
	NotReleasable: "The network cannot release the deposit as it stands. Retry it once the cause is mended.",
	TransactionFailed: "A transaction of the release failed for good. Retry it once the cause is mended; what was " +
		"paid is not paid again.",
	Replanning:   "The release is planned again.",
	Unclassified: "The release failed for a reason outside the table. Read the log, then retry it.",
}

// message returns why a settlement with a reason waits or failed, and when its wait began, as the API shows
// both.
func (s Settlement) message(reason Reason) (message, since string) {
	switch s.Status {
	case Released, Reverted:
		return "", ""
	case Failed:
		return withDetail(messages[reason], s.ReasonMessage), ""
	case Held:
		return withDetail(messages[reason], s.ReasonMessage), wire.Time(s.WaitingSince)
	case Pending:
		if s.DueAt.IsZero() && s.SweepID == "" {
			return "release_by_hand: the account releases by hand; see Settlements.ReleaseNow", ""
		}
	case Releasing:
	}

	return s.ReasonMessage, wire.Time(s.WaitingSince)
}

// withDetail appends a detail to a reason's message.
func withDetail(message, detail string) string {
	if message == "" || detail == "" {
		return message + detail
	}

	return message + " Cause: " + detail
}
