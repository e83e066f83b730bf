package txmgr

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
)

// disputeFor is the time after this process's last try for which Disputes lists a transaction.
const disputeFor = 15 * time.Minute

// Disputes lists wallets with a transaction or release that waits, as this process saw it. It waits for nodes
// that disagree or refuse it, for a signer that hangs, or for a fee within its maximum. The zero value is
// empty.
type Disputes struct{ rows sync.Map }

// dispute is one row of Health, and the time of the last try.
type dispute struct {
	wallet health.Wallet
	at     time.Time
}

// Note records the outcome of a try, at a time, for the transaction or release with a key. It lists the
// wallet if err is a dispute: nodes disagree or refuse a release, the signer hangs, or the network asks for
// too high a fee. Any other outcome removes the key.
func (d *Disputes) Note(key any, err error, w health.Wallet, at time.Time) {
	switch fault.Code(err) {
	case "nodes_disagree", "not_releasable", "signer_timeout", "fee_above_maximum":
		d.rows.Store(key, dispute{w, at})
	default:
		d.rows.Delete(key)
	}
}

// Since returns the wallets of a network that were noted after a time, one row per key, ordered by their
// reasons. It forgets older rows.
func (d *Disputes) Since(network string, since time.Time) (named []health.Wallet) {
	d.rows.Range(func(key, value any) bool {
		switch row := value.(dispute); {
		case !row.at.After(since):
			d.rows.Delete(key)
		case row.wallet.Network == network:
			named = append(named, row.wallet)
		}

		return true
	})

	slices.SortFunc(named, func(a, b health.Wallet) int { return cmp.Compare(a.Reason, b.Reason) })

	return named
}

// Disputes returns the wallets of a network with a transaction in a dispute, one row for each transaction, as
// this process saw them in the last disputeFor.
func (o *Manager) Disputes(network string) []health.Wallet {
	return o.disputes.Since(network, o.now().Add(-disputeFor))
}

// noteDispute notes the outcome of a transaction's last try in Disputes.
func (d *walletWorker) noteDispute(t wallet.Transaction, err error) {
	w := health.Wallet{
		Network:   t.Network,
		Address:   string(t.Order.From.Address),
		AccountID: t.Owner.AccountID,
	}
	if err != nil {
		w.Reason = "a " + string(t.Kind) + " of " + t.ObjectID + " waits: " + publicText(err)
	}

	d.disputes.Note(t.ID, err, w, d.now())
}
