package engine

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/addresspool"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/deliver"
	"github.com/seed-8ee7f392/payments/internal/gate"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/internal/sweep"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/internal/uncovered"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook"
)

// assemble makes the domains' services, each over its own view of the store. A service is made after the
// services that it uses.
func (e *Engine) assemble(
	fees map[string]chain.Address,
	watchOnly map[string]map[uint32]chain.Address,
) (err error) {
	if e.Accounts, err = e.newAccounts(); err != nil {
		return err
	}

	e.addresses = e.newAddressPool()
	e.Ingester = e.newIngester()
	e.Invoices = e.newInvoices()
	e.gate = e.newGate()
	e.Transactions = e.newTransactions(watchOnly)
	e.Settlements = settlement.New(settlement.Config{
		DB:  view[settlement.Tx]{e.records(), e, func(tx Tx) settlement.Tx { return tx }},
		Now: e.config.Now,
	})
	e.Sweeper = e.newSweeper(fees)
	e.Payouts = e.newPayouts()
	e.uncovered = e.newUncovered()
	e.Deliverer = e.newDeliverer()
	e.Webhooks, err = e.newWebhooks()

	return err
}

func (e *Engine) newAccounts() (*account.Service, error) {
	return account.New(account.Config{
		DB:        view[account.Tx]{e.records(), e, func(tx Tx) account.Tx { return tx }},
		Registry:  e.Networks,
		IDs:       e.ids,
		Now:       e.config.Now,
		Entropy:   e.config.Entropy,
		KeyPrefix: e.config.KeyPrefix,
		Seal:      e.sealer,
		Limits:    e.config.Limits,
	})
}

func (e *Engine) newIngester() *ingest.Ingester {
	return ingest.New(ingest.Config{
		DB:       view[ingest.Tx]{e.records(), e, func(tx Tx) ingest.Tx { return tx }},
		Registry: e.Networks,
		Rates:    e.Rates,
		IDs:      e.ids,
		Now:      e.config.Now,
		Log:      e.config.Log,

		VerifyAddress: func(a invoice.Address) (invoice.VerifiedAddress, error) { return e.Invoices.VerifyAddress(a) },
	})
}

func (e *Engine) newAddressPool() *addresspool.Pool {
	return addresspool.New(addresspool.Config{
		Registry: e.Networks,
		Keys:     verifiedKeys{e},
		Reserve: func(ctx context.Context, counter string, n int) (first int64, err error) {
			err = e.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
				first, err = tx.ReserveNumbers(ctx, counter, n, 0)
				return err
			})

			return first, err
		},
	})
}

func (e *Engine) newInvoices() *invoice.Service {
	return invoice.New(invoice.Config{
		DB:       view[invoice.Tx]{e.records(), e, func(tx Tx) invoice.Tx { return tx }},
		Registry: e.Networks,
		Rates:    e.Rates,
		Keys:     verifiedKeys{e},
		IDs:      e.ids,
		Ingester: e.Ingester,
		Ahead:    e.addresses,
		Now:      e.config.Now,
		QuoteFor: e.config.QuoteFor,
		Deposits: e.config.Limits.DepositAddresses,
		Seal:     e.sealer,
		Entropy:  e.config.Entropy,
	})
}

func (e *Engine) newGate() *gate.Gate {
	return gate.New(gate.Config{
		Signer:   e.config.Signer,
		Networks: e.Networks,
		DB:       e.records(),
		CancelUncovered: func(ctx context.Context, p payout.Payout) (bool, error) {
			return e.uncovered.Cancel(ctx, p)
		},
		VerifyPayout:  func(p payout.Payout) error { return e.Payouts.Verify(p) },
		VerifyAccount: e.Accounts.Verify,
		VerifyAddress: e.Invoices.VerifyAddress,
		MasterWallet: func(ctx context.Context, network string, index uint32) (chain.Party, error) {
			return e.Transactions.MasterWallet(ctx, network, index)
		},
		FeeAddress: func(network string) chain.Address { return e.fees[network] },
		Now: func() time.Time {
			own, stored := e.config.Now(), e.storeNow()
			if stored.After(own) {
				return stored
			}

			return own
		},
		Log: e.config.Log,
	})
}

// spends returns the coins or nonces that the bytes of a payout use up. The gate's approval decides, not the
// row.
func (e *Engine) spends(t wallet.Transaction) []string {
	if !isSignedPayout(t) {
		return nil
	}

	spends, known := e.gate.Approved(t.ObjectID)
	if known && len(spends) == 0 { // its transactions only expire
		spends = []string{
			chaindata.SpendKey(chain.Spend{Sender: t.Order.From.Address, By: t.TxHash, Shared: true}),
		}
	}

	return spends
}

// isSignedPayout reports whether bytes of a payout are stored, and are in no block.
func isSignedPayout(t wallet.Transaction) bool {
	return t.Kind == wallet.Payout && (t.State == wallet.Signed || t.State == wallet.Broadcast)
}

// priceUSD returns the fresh price of an asset in USD.
func (e *Engine) priceUSD(ctx context.Context, asset chain.Asset) (decimal.Decimal, error) {
	q, err := e.Rates.Quote(ctx, chaindata.PriceSymbol(asset), "USD")
	return q.Rate, err
}

func (e *Engine) newTransactions(watchOnly map[string]map[uint32]chain.Address) *txmgr.Manager {
	return txmgr.New(txmgr.Config{
		DB:        view[wallet.Tx]{e.records(), e, func(tx Tx) wallet.Tx { return tx }},
		Registry:  e.Networks,
		Signer:    e.gate,
		IDs:       e.ids,
		Now:       e.storeNow,
		Log:       e.config.Log,
		Heartbeat: e.heartbeat,
		WatchOnly: watchOnly,
		Foreign:   e.config.Foreign,
		Epoch:     e.epoch.now,
		MaySign:   e.maySign,

		ReplaceAfter: e.config.ReplaceAfter,
	})
}

func (e *Engine) newSweeper(fees map[string]chain.Address) *sweep.Sweeper {
	return sweep.New(sweep.Config{
		DB:           view[settlement.Tx]{e.records(), e, func(tx Tx) settlement.Tx { return tx }},
		Registry:     e.Networks,
		Outbox:       e.Transactions,
		FeeAddresses: fees,
		Outputs:      e.outputs,
		Unread:       e.unread,
		Price:        e.priceUSD,
		IDs:          e.ids,
		Now:          e.storeNow,
		Log:          e.config.Log,
		Heartbeat:    e.heartbeat,
	})
}

func (e *Engine) newPayouts() *payout.Service {
	return payout.New(payout.Config{
		DB:       payoutView{view[payout.Tx]{e.records(), e, func(tx Tx) payout.Tx { return tx }}},
		Registry: e.Networks,
		Sender:   e.Transactions,
		Price:    e.priceUSD,

		MaxFeeShare: e.config.MaxFeeShare,

		Seal:   e.sealer,
		Spends: e.spends,
		IDs:    e.ids,
		Now:    e.storeNow,
		Log:    e.config.Log,
	})
}

func (e *Engine) newUncovered() *uncovered.Canceler {
	return uncovered.New(uncovered.Config{
		DB:          view[payout.Tx]{e.records(), e, func(tx Tx) payout.Tx { return tx }},
		Refunds:     e.Payouts,
		WasCompared: e.Transactions.WasCompared,
	})
}

func (e *Engine) newDeliverer() *deliver.Deliverer {
	counting, _ := e.config.Store.(webhook.BacklogReader) // Health.DueAt stays zero without one

	return deliver.New(deliver.Config{
		DB:        view[webhook.Tx]{e.records(), e, func(tx Tx) webhook.Tx { return tx }},
		IDs:       e.ids,
		Seal:      e.sealer,
		HTTP:      deliver.HTTP{Allow: e.config.WebhookAllow},
		Policy:    e.config.Webhooks,
		Process:   e.config.Process,
		Retention: e.config.KeepEvents,
		Now:       e.storeNow,
		Entropy:   e.config.Entropy,
		Log:       e.config.Log,
		Backlog:   counting,
		Claimed: func(err error) {
			e.work.done("webhooks", paceWorkers, e.config.Now(), false, err)
		},
	})
}

func (e *Engine) newWebhooks() (*webhook.Service, error) {
	return webhook.New(webhook.Config{
		DB:      view[webhook.Tx]{e.records(), e, func(tx Tx) webhook.Tx { return tx }},
		IDs:     e.ids,
		Seal:    e.sealer,
		Allow:   e.config.WebhookAllow,
		Now:     e.config.Now,
		Entropy: e.config.Entropy,
	})
}
