package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// SettlementResources returns settlements as the API shows them. A settlement's row has no tag, so its master
// wallet is derived from the index of the verified account. An ended settlement shows no master wallet if its
// account now has another one, or none.
//
// Errors: fault.Unavailable, code account_damaged; those of the store.
func (e *Engine) SettlementResources(
	ctx context.Context,
	settlements ...settlement.Settlement,
) ([]settlement.Resource, error) {
	type wallet struct{ accountID, network string }

	out := make([]settlement.Resource, len(settlements))
	accounts, masters := map[string]account.Account{}, map[wallet]chain.Address{}

	for i, s := range settlements {
		out[i] = s.Resource()
		if s.MasterWalletAddress == "" {
			continue
		}

		a, known := accounts[s.Owner.AccountID]
		if !known {
			var err error
			if a, err = e.verifiedAccount(ctx, e.config.Store, s.Owner.AccountID); err != nil {
				return nil, err
			}

			accounts[a.ID] = a
		}

		of := wallet{a.ID, s.Network}

		master, known := masters[of]
		if !known {
			master = e.masterOf(ctx, a, s.Network)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}

			masters[of] = master
		}

		isOver := s.Status == settlement.Released || s.Status == settlement.Failed ||
			s.Status == settlement.Reverted
		if isOver && s.MasterWalletAddress != master {
			master = ""
		}

		out[i].MasterWalletAddress = master
	}

	return out, nil
}

// masterOf returns the master wallet of a verified account on a network, or "" if it cannot be derived.
func (e *Engine) masterOf(ctx context.Context, a account.Account, network string) chain.Address {
	master, err := e.Transactions.MasterWallet(ctx, network, a.Index)
	if err != nil {
		e.config.Log.WarnContext(
			ctx, "a master wallet could not be derived", "network", network, "account", a.ID, "error", err,
		)

		return ""
	}

	return master.Address
}
