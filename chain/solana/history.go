package solana

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// TransfersTo returns the blocks of a range of heights with transfers to the addresses and their token
// accounts, or with transactions that one of the addresses signed. They are read from the accounts'
// histories, to their ends. Spent lists those signers alone. Where anything cannot be read it is fault.Unavailable.
// Only backends answer that have reached the end of the range; without one it is fault.NotFound.
//
// Nodes omit signatures silently, so every history must be consistent: each transaction finds the balance that the
// one before left, and the newest leaves what the account holds.
func (d *driver) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	if to < from {
		return nil, emptyRange(from, to)
	}

	accounts, err := d.accountsOf(addresses)
	if err != nil {
		return nil, err
	}

	found := d.newFindings(addresses)

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		clear(found.txs)

		return d.readRange(ctx, e, accounts, from, to, found)
	})
	if err != nil {
		return nil, aboveTip(err, to)
	}

	return found.blocks()
}

// readRange reads the histories of accounts in a range of heights from one node.
func (d *driver) readRange(
	ctx context.Context,
	e *endpoint,
	accounts []addressAccount,
	from, to uint64,
	found *findings,
) error {
	last, err := d.blockOf(ctx, e, to)
	if err != nil {
		return err
	}

	first, err := d.headerAt(ctx, e, from)
	if err != nil {
		return err
	}

	infos, slot, err := e.accounts(ctx, keysOf(accounts), last.slot)
	if err != nil {
		return err
	}

	return e.forEach(ctx, len(accounts), func(ctx context.Context, i int) error {
		account := accounts[i]

		txs, err := d.readBetween(ctx, e, account.holdingAccount, first.slot, last.slot, balanceOf{
			units: account.balance(infos[i]),
			slot:  slot,
		})
		if unread, ok := unreadTx(err); ok {
			return cannotRead(account.address, unread.Why)
		}

		found.add(txs...)

		return err
	})
}

func cannotRead(address chain.Address, why string) error {
	return fault.New(
		fault.Unavailable, "node_unavailable", "the history of %s cannot be read: %s", address, why,
	)
}

// balanceOf is what an account holds after a slot, in base units.
type balanceOf struct{ units, slot uint64 }

// readBetween returns the transactions of an account between two slots, which must explain what it holds now.
func (d *driver) readBetween(
	ctx context.Context,
	e *endpoint,
	account holdingAccount,
	from, to uint64,
	now balanceOf,
) (txs []confirmedTx, err error) {
	list, older, err := e.signatures(ctx, account.key.String(), from, now.slot)
	if err != nil {
		return nil, err
	}

	slices.Reverse(list)

	// The first one after the range shows what was there at its end.
	end := slices.IndexFunc(list, func(info signatureInfo) bool { return info.Slot > to })
	if end >= 0 {
		list = list[:end+1]
	}

	check := balanceCheck{account: account}
	if err := d.balanceBefore(ctx, e, &check, older); err != nil {
		return nil, err
	}

	read, err := d.fetchAll(ctx, e, list)
	if err != nil {
		return nil, err
	}

	for _, tx := range read {
		if err := check.next(tx.executedTx); err != nil {
			return nil, e.Garbled("%s", err)
		}

		if tx.block.slot <= to {
			txs = append(txs, tx)
		}
	}

	if end < 0 {
		if err := check.final(now.units); err != nil {
			return nil, fmt.Errorf("%w: %w", failover.ErrLagging, err)
		}
	}

	return txs, nil
}

// fetchAll reads listed transactions with their blocks. One that cannot be read is an *unreadable.
func (d *driver) fetchAll(ctx context.Context, e *endpoint, list []signatureInfo) ([]confirmedTx, error) {
	txs := make([]confirmedTx, len(list))

	for i, info := range list {
		var err error
		if txs[i], err = d.fetchListed(ctx, e, info.Signature); err != nil {
			return nil, err
		}
	}

	return txs, nil
}

// balanceBefore sets the balance before the first transaction that is read: what the one before it left, or nothing
// where the node has everything. It stays unknown where the node has forgotten what was before.
func (d *driver) balanceBefore(
	ctx context.Context,
	e *endpoint,
	check *balanceCheck,
	older *signatureInfo,
) error {
	if older == nil {
		oldest, err := e.oldestSlot(ctx)
		check.known = err == nil && oldest <= 1

		return err
	}

	left, known, err := d.leftBy(ctx, e, check.account, older.Signature)
	check.expected, check.known = left, known

	return err
}

// leftBy returns what an account held after a listed transaction. known is false where the node does not show it.
func (d *driver) leftBy(
	ctx context.Context,
	e *endpoint,
	account holdingAccount,
	signature string,
) (left uint64, known bool, err error) {
	if left, known = d.seen.leftBy(account.key, signature); known {
		return left, true, nil
	}

	tx, err := d.fetchListed(ctx, e, signature)

	_, isUnread := errors.AsType[*unreadable](err)

	switch {
	case isUnread || errors.Is(err, failover.ErrPruned):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}

	_, left, known = account.balanceChange(tx.executedTx)
	if known {
		d.seen.putLeft(account, signature, left)
	}

	return left, known, nil
}

// addressAccount is an account of an address.
type addressAccount struct {
	holdingAccount
	address chain.Address
}

// accountsOf returns the addresses, each once, with their token accounts of all enabled mints.
func (d *driver) accountsOf(addresses []chain.Address) (accounts []addressAccount, err error) {
	seen := map[chain.Address]bool{}

	for _, address := range addresses {
		owner, err := parseKey(string(address))
		if err != nil {
			return nil, err
		}

		if seen[address] {
			continue
		}

		seen[address] = true
		accounts = append(accounts, addressAccount{holdingAccount{key: owner}, address})

		for _, m := range d.mints {
			key, err := m.accountOf(owner)
			if err != nil {
				return nil, err
			}

			accounts = append(accounts, addressAccount{holdingAccount{key: key, mint: &m}, address})
		}
	}

	return accounts, nil
}

// blockOf returns the block at a height. That of the last Head needs no call.
func (d *driver) blockOf(ctx context.Context, e *endpoint, height uint64) (blockHeader, error) {
	if head := d.head.Load(); head != nil && head.Height == height {
		return *head, nil
	}

	return d.headerAt(ctx, e, height)
}

// findings are the transactions that a reading found for addresses. It is safe for concurrent use.
type findings struct {
	driver    *driver
	addresses map[chain.Address]bool

	mu  sync.Mutex
	txs map[string]confirmedTx // by hash
}

func (d *driver) newFindings(addresses []chain.Address) *findings {
	f := &findings{driver: d, addresses: map[chain.Address]bool{}, txs: map[string]confirmedTx{}}
	for _, address := range addresses {
		f.addresses[address] = true
	}

	return f
}

func (f *findings) add(txs ...confirmedTx) {
	f.mu.Lock()
	defer f.mu.Unlock()

	for _, tx := range txs {
		f.txs[tx.hash] = tx
	}
}

// blocks returns the transfers to the addresses and what they signed, by block in order.
func (f *findings) blocks() ([]chain.Block, error) {
	byHeight := map[uint64]*chain.Block{}

	for _, tx := range f.txs {
		transfers, err := f.driver.transfers(tx.executedTx)
		if err != nil {
			return nil, err
		}

		transfers = slices.DeleteFunc(transfers, func(t chain.Transfer) bool { return !f.addresses[t.To] })
		spent := slices.DeleteFunc(tx.spends(), func(by chain.Spend) bool { return !f.addresses[by.Sender] })

		if len(transfers)+len(spent) == 0 {
			continue
		}

		b := byHeight[tx.block.Height]
		if b == nil {
			b = &chain.Block{Ref: tx.block.ref(), Parent: tx.block.Parent}
			byHeight[tx.block.Height] = b
		}

		if b.Hash != tx.block.Hash {
			return nil, fault.New(
				fault.Unavailable, "node_unavailable", "block %d of network %s changed while it was read",
				b.Height, f.driver.network.Slug,
			)
		}

		b.Transfers, b.Spent = append(b.Transfers, transfers...), append(b.Spent, spent...)
	}

	var blocks []chain.Block

	for _, height := range slices.Sorted(maps.Keys(byHeight)) {
		b := *byHeight[height]
		slices.SortFunc(b.Transfers, func(x, y chain.Transfer) int {
			return cmp.Or(cmp.Compare(x.TxHash, y.TxHash), cmp.Compare(x.Index, y.Index))
		})
		slices.SortFunc(b.Spent, func(x, y chain.Spend) int {
			return cmp.Or(cmp.Compare(x.By, y.By), cmp.Compare(x.Sender, y.Sender))
		})

		blocks = append(blocks, b)
	}

	return blocks, nil
}
