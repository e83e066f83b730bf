package solana

import (
	"context"
	"encoding/json"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// The commitments of calls. What ends anything is read at final. Everything else is read at the newest commitment that
// a node offers: "confirmed", which shows payments earlier, or final where it knows no other, as with Alpenglow.
const (
	final = "finalized"
	early = "confirmed"
)

// newest is the newest commitment that a node offers, when a call with it is encoded.
type newest struct{ node *endpoint }

// MarshalJSON returns "confirmed" or "finalized".
func (n newest) MarshalJSON() ([]byte, error) {
	if n.node.finalOnly.Load() {
		return json.Marshal(final)
	}

	return json.Marshal(early)
}

// newest returns the parameter for the newest commitment.
func (e *endpoint) newest() map[string]any { return map[string]any{"commitment": newest{e}} }

// shows reports whether the node shows what has a status of getSignatureStatuses at its newest commitment.
func (e *endpoint) shows(status string) bool {
	return status == final || status == early && !e.finalOnly.Load()
}

// findCommitment learns whether the node offers the earlier commitment, and reports whether it just turned out not to.
// Source: Agave answers an unknown commitment as it does any parameter that it cannot read.
func (e *endpoint) findCommitment(ctx context.Context) (lost bool, err error) {
	if e.finalOnly.Load() {
		return false, nil
	}

	_, err = e.callOnce(ctx, "getBlockHeight", []any{map[string]any{"commitment": early}})
	if failover.RefusedWith(err, codeInvalidParams) {
		e.finalOnly.Store(true)
		return true, nil
	}

	return false, err
}
