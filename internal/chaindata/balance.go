package chaindata

import (
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// UnsharedBalance is the fault code of a balance that one node alone says, where several are configured.
const UnsharedBalance = "balance_unshared"

// IsUnshared reports whether the amount that came with a holding is what one node alone says.
func IsUnshared(u chain.UnreadableHolding) bool { return fault.Code(u.Err) == UnsharedBalance }

// WithoutUnshared returns the error of a reading of balances without the holdings of which one node alone says the
// amount, for callers that take one node's word; nil where no other is left. Other errors are returned unchanged.
func WithoutUnshared(err error) error {
	unreadable, ok := errors.AsType[*chain.UnreadableError](err)
	if !ok {
		return err
	}

	var others []chain.UnreadableHolding

	for _, u := range unreadable.Holdings {
		if !IsUnshared(u) {
			others = append(others, u)
		}
	}

	if len(others) == 0 {
		return nil
	}

	return &chain.UnreadableError{Network: unreadable.Network, Holdings: others}
}
