package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// SettlementResources returns settlements as the API shows them. A settlement's row has no tag, so that the master
// wallet is derived from the number of its verified account. Of one that is over, the wallet is left out where that is
// another one now, or none.
func (e *Engine) SettlementResources(
	ctx context.Context,
	settlements ...settlement.Settlement,
) ([]settlement.Resource, error) {
	type wallet struct{ accountID, network string }

	out := make([]settlement.Resource, len(settlements))
	masters := map[wallet]chain.Address{}

	for i, s := range settlements {
		out[i] = s.Resource()
		if s.MasterWalletAddress == "" {
			continue
		}

		of := wallet{s.Owner.AccountID, s.Network}

		master, known := masters[of]
		if !known {
			var err error
			if master, err = e.masterOf(ctx, of.accountID, of.network); err != nil {
				return nil, err
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

// masterOf returns the master wallet of an account on a network, "" where none can be derived.
//
// Errors: fault.Unavailable, code account_damaged; those of the store.
func (e *Engine) masterOf(ctx context.Context, accountID, network string) (chain.Address, error) {
	a, err := e.verifiedAccount(ctx, e.config.Store, accountID)
	if err != nil {
		return "", err
	}

	master, err := e.Transactions.MasterWallet(ctx, network, a.Index)
	if err != nil {
		e.config.Log.WarnContext(
			ctx,
			"a master wallet could not be derived",
			"network",
			network,
			"account",
			accountID,
			"error",
			err,
		)

		return "", ctx.Err()
	}

	return master.Address, nil
}
