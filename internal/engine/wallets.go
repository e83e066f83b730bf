package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/invoice"
)

// This file keeps the master wallets among the watched addresses. Their spending, and on UTXO networks their
// coins, are read from blocks. So every account's wallet must be known before its blocks are stored.

// walletWatch remembers the wallets that this process registered, per network.
type walletWatch struct {
	mu sync.Mutex
	// newest are the ids of the newest accounts whose wallets are registered, by network.
	newest map[string]map[string]bool
}

// walletPage is how many accounts are looked at before each batch. A slow clock may make an account's id look
// older than others: it is still found if fewer newer accounts exist.
const walletPage = 50

// watchWallets registers the master wallets of accounts that were made since it was last called. The block
// handler calls it before each batch: if a wallet's address was shown before a block was mined, its coins in
// that block are indexed.
func (e *Engine) watchWallets(ctx context.Context, n chain.Network) error {
	driver, err := e.Networks.Driver(n.Slug)
	if err != nil {
		return err
	}

	e.watched.mu.Lock()
	defer e.watched.mu.Unlock()

	if e.watched.newest == nil {
		e.watched.newest = map[string]map[string]bool{}
	}

	known, newest, after := e.watched.newest[n.Slug], map[string]bool{}, ""

	for reached := false; !reached; {
		page, err := e.config.Store.Accounts(ctx, after, walletPage) // newest first
		if err != nil {
			return err
		}

		var fresh []account.Account

		for _, a := range page {
			if known[a.ID] {
				reached = true
			} else {
				fresh = append(fresh, a)
			}

			if len(newest) < walletPage {
				newest[a.ID] = true
			}
		}

		if err := e.registerWallets(ctx, driver, fresh); err != nil {
			return err
		}

		if len(page) < walletPage {
			break
		}

		after = page[len(page)-1].ID
	}

	e.watched.newest[n.Slug] = newest

	return nil
}

// watchWalletsEarly is watchWallets before the first read of a network. Then its wallets are on record even
// if none of its nodes answers.
func (e *Engine) watchWalletsEarly(ctx context.Context, n chain.Network) {
	err := hostcall.Catch(
		ctx, e.config.Log, "registering wallets of "+n.Slug, func() error { return e.watchWallets(ctx, n) },
	)
	if err != nil && ctx.Err() == nil {
		e.config.Log.WarnContext(
			ctx, "the master wallets could not be registered; they are before the next batch of blocks",
			"network", n.Slug, "error", err,
		)
	}
}

// firstAddress returns a function that returns when the first address of a network was made; zero if there is
// none. It includes the wallets of accounts for which nothing was read yet.
func (e *Engine) firstAddress(n chain.Network) func(ctx context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		if err := e.watchWallets(ctx, n); err != nil {
			return time.Time{}, err
		}

		return e.Ingester.FirstAddress(ctx, n.Slug)
	}
}

// registerWallets stores the master wallets of accounts as watched addresses, on UTXO networks with
// balances. It is idempotent.
func (e *Engine) registerWallets(
	ctx context.Context,
	driver chain.Driver,
	accounts []account.Account,
) error {
	if len(accounts) == 0 {
		return nil
	}

	n := driver.Network()
	_, coins := driver.(chain.CoinReader)

	parties, owners, err := e.masterWallets(ctx, n, accounts)
	if err != nil {
		return err
	}

	addresses := slices.Sorted(maps.Keys(owners))

	return e.Update(ctx, func(ctx context.Context, tx Tx) error {
		known, err := tx.MatchAddresses(ctx, n.Space(), addresses)
		if err != nil {
			return err
		}

		have := map[chain.Address]bool{}
		for _, a := range known {
			have[a.Address] = true
		}

		for _, p := range parties {
			if coins {
				if err := e.Transactions.TrackTx(ctx, tx, owners[p.Address], n.Slug, p); err != nil {
					return err
				}
			}

			if err := e.registerTx(ctx, tx, n, owners[p.Address], p, have[p.Address]); err != nil {
				return err
			}
		}

		return nil
	})
}

// registerTx stores a master wallet, and its address unless it is known. A known address may belong to a
// wallet that missed an epoch, or to a wallet on another network.
func (e *Engine) registerTx(
	ctx context.Context,
	tx Tx,
	n chain.Network,
	owner event.Owner,
	p chain.Party,
	known bool,
) error {
	if known && e.epoch.now().Number == 0 {
		return nil
	}

	if err := e.Transactions.RegisterTx(ctx, tx, n.Slug, p); err != nil || known {
		return err
	}

	return tx.PutAddress(ctx, invoice.Address{
		Space:     n.Space(),
		Address:   p.Address,
		Kind:      invoice.ForWallet,
		Owner:     owner,
		Network:   n.Slug,
		Key:       p.Key,
		CreatedAt: e.config.Now(),
	})
}

// masterWallets returns the master wallets of accounts on a network, and their owners. It leaves out wallets
// that never send: the signer has no such key, or the driver no wallets.
func (e *Engine) masterWallets(
	ctx context.Context,
	n chain.Network,
	accounts []account.Account,
) (wallets []chain.Party, owners map[chain.Address]event.Owner, err error) {
	owners = map[chain.Address]event.Owner{}

	for _, a := range accounts {
		p, err := e.Transactions.MasterWallet(ctx, n.Slug, a.Index)
		if errors.Is(err, fault.Forbidden) || errors.Is(err, fault.Unsupported) {
			continue
		}

		if err != nil {
			return nil, nil, err
		}

		owners[p.Address] = event.Owner{AccountID: a.ID, Livemode: n.Livemode}
		wallets = append(wallets, p)
	}

	return wallets, owners, nil
}

// parties returns a lookup, inside tx, of our addresses among others, with their keys.
func parties(tx Tx, space chain.Space) txmgr.PartyLookup {
	return func(ctx context.Context, addresses []chain.Address) (map[chain.Address]chain.Party, error) {
		found, err := tx.MatchAddresses(ctx, space, addresses)
		if err != nil {
			return nil, err
		}

		ours := make(map[chain.Address]chain.Party, len(found))
		for _, a := range found {
			ours[a.Address] = chain.Party{Key: a.Key, Address: a.Address}
		}

		return ours, nil
	}
}
