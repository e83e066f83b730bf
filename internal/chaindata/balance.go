package chaindata

import (
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
)

// WithoutProvisional removes the holdings with a provisional amount from an error of reading balances, for
// callers that may show the balance of one node. It returns nil if no holding is left. Other errors are
// returned unchanged.
func WithoutProvisional(err error) error {
	unreadable, ok := errors.AsType[*chain.UnreadableError](err)
	if !ok {
		return err
	}

	var others []chain.UnreadableHolding

	for _, u := range unreadable.Holdings {
		if !u.Provisional {
			others = append(others, u)
		}
	}

	if len(others) == 0 {
		return nil
	}

	return &chain.UnreadableError{Network: unreadable.Network, Holdings: others}
}
