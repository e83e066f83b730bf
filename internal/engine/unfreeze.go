package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// Unfreeze ends the freeze that a new Config.Epoch began. It is called after a person has compared the master
// wallet of an account with the chain and the pool of a network. accountID "" stands for all accounts. It is
// idempotent.
//
// Errors: fault.State with code transaction_unacknowledged while a transaction that is not on record waits
// for Acknowledge: its wallet stays frozen.
func (e *Engine) Unfreeze(ctx context.Context, network, accountID string) error {
	if _, err := e.Networks.Driver(network); err != nil {
		return err
	}

	var open []wallet.Wallet

	after := ""
	for {
		page, err := e.unfreezePage(ctx, network, accountID, after)
		if err != nil {
			return err
		}

		open = append(open, page.frozen...)
		if after = page.last; after == "" {
			break
		}
	}

	e.Wake()

	if len(open) == 0 {
		return nil
	}

	return fault.New(
		fault.State,
		"transaction_unacknowledged",
		"%d wallets on %s stay frozen, as they made transactions that are not on record: say with Engine.Acknowledge "+
			"what %s of %s was",
		len(open),
		network,
		open[0].FrozenBy,
		open[0].Party.Address,
	)
}

// unfrozen is the result of one page: the wallets that stay frozen, and the last account, empty after the last
// page.
type unfrozen struct {
	frozen []wallet.Wallet
	last   string
}

func (e *Engine) unfreezePage(ctx context.Context, network, accountID, after string) (unfrozen, error) {
	var page []account.Account

	if accountID != "" {
		a, err := e.Accounts.Verify(ctx, accountID)
		if err != nil {
			return unfrozen{}, err
		}

		page = append(page, a)
	} else {
		var err error
		if page, err = e.config.Store.Accounts(ctx, after, accountsPage); err != nil {
			return unfrozen{}, err
		}
	}

	masters, err := e.masters(ctx, page, network)
	if err != nil {
		return unfrozen{}, err
	}

	var out unfrozen

	err = e.Update(ctx, func(ctx context.Context, tx Tx) error {
		out = unfrozen{}

		for _, m := range masters {
			w, err := e.Transactions.ReviewTx(ctx, tx, network, m.party)
			if err != nil {
				return err
			}

			if w.Frozen != "" {
				out.frozen = append(out.frozen, w)
			}
		}

		return nil
	})

	if accountID == "" && len(page) == accountsPage {
		out.last = page[len(page)-1].ID
	}

	return out, err
}
