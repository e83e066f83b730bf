package chain

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/fault"
)

// UnreadableError names the holdings that a token's contract does not answer for: its balanceOf reverts, or
// returns no number; and those of which no two nodes say the same balance (ErrNotAgreed). The balances that came with
// it are right for all other holdings.
type UnreadableError struct {
	// Network is the network's slug.
	Network string
	// Holdings are those that could not be read, with what was answered, in the order asked.
	Holdings []UnreadableHolding
}

// UnreadableHolding is a holding that could not be read.
type UnreadableHolding struct {
	Holding
	// Index is its place in what was asked.
	Index int
	// Err is what the contract answered, or a fault.Unavailable that is ErrNotAgreed (nodes_disagree, nodes_missing).
	Err error
	// Provisional is set where the amount that came with the holding is what one node says. It may be shown; it
	// confirms, corrects and proves nothing.
	Provisional bool
}

// Error names the first holding and how many others there are.
func (e *UnreadableError) Error() string {
	first := e.Holdings[0]

	return fmt.Sprintf(
		"network %s: the balance of asset %s at %s cannot be read, nor can %d others: %v",
		e.Network, first.AssetID, first.Address, len(e.Holdings)-1, first.Err,
	)
}

// Is reports that it is fault.Unavailable to callers that need every balance.
func (e *UnreadableError) Is(target error) bool { return target == fault.Unavailable }
