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

// disputeFor is how long a transaction is named that this process has not tried again.
const disputeFor = 15 * time.Minute

// Disputes are the wallets with something that waits for nodes to say the same or to refuse it no more, for a signer
// that hangs, or for a fee within its maximum, as this process saw them. The zero value has none.
type Disputes struct{ rows sync.Map }

// dispute is what Health shows of one thing, and when it was tried last.
type dispute struct {
	wallet health.Wallet
	at     time.Time
}

// Note names the wallet of something with a key, if the error of a try at a time is that nodes disagree or refuse a
// release, that the signer hangs or that the network asks for too high a fee, and no more otherwise.
func (d *Disputes) Note(key any, err error, w health.Wallet, at time.Time) {
	switch fault.Code(err) {
	case "nodes_disagree", "not_releasable", "signer_timeout", "fee_above_maximum":
		d.rows.Store(key, dispute{w, at})
	default:
		d.rows.Delete(key)
	}
}

// Since returns the wallets of a network with what was tried after a time, one row for each, by their reasons. It
// forgets what was not.
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

// Disputes returns the wallets of a network with a transaction that waits for nodes to say the same or for a signer
// that hangs, one row for each transaction, as this process saw them lately.
func (o *Manager) Disputes(network string) []health.Wallet {
	return o.disputes.Since(network, o.now().Add(-disputeFor))
}

// noteDispute has Disputes name a transaction while its error is that nodes disagree or the signer hangs.
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
