package txmgr

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
)

// disputeFor is how long a transaction is named that this process has not tried again.
const disputeFor = 15 * time.Minute

// dispute is a transaction that could not be built, as nodes said different things of it.
type dispute struct {
	wallet health.Wallet
	at     time.Time
}

// Disputes returns the wallets of a network with a transaction that waits for nodes to say the same, one row for each
// transaction, as this process saw them lately.
func (o *Manager) Disputes(network string) (named []health.Wallet) {
	o.disputes.Range(func(id, value any) bool {
		switch d := value.(dispute); {
		case o.now().Sub(d.at) >= disputeFor:
			o.disputes.Delete(id)
		case d.wallet.Network == network:
			named = append(named, d.wallet)
		}

		return true
	})

	slices.SortFunc(named, func(a, b health.Wallet) int { return cmp.Compare(a.Reason, b.Reason) })

	return named
}

// noteDispute has Disputes name a transaction while its error is that nodes disagree.
func (d *walletWorker) noteDispute(t wallet.Transaction, err error) {
	if fault.Code(err) != "nodes_disagree" {
		d.disputes.Delete(t.ID)
		return
	}

	d.disputes.Store(t.ID, dispute{
		wallet: health.Wallet{
			Network:   t.Network,
			Address:   string(t.Order.From.Address),
			AccountID: t.Owner.AccountID,
			Reason:    "a " + string(t.Kind) + " of " + t.ObjectID + " waits: " + publicText(err),
		},
		at: d.now(),
	})
}
