package solana

// This file reads by address, from where each address was read to.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

const (
	// maxReads bounds the transactions of one account that are read in one reading, and maxPages the pages of its
	// history that are listed, so that nobody waits for another's dust.
	maxReads = 32
	maxPages = 10

	// hotFor is how long after a transaction, by the times of blocks, the history of an account is looked at in every
	// reading: a payment may equal what a sweep took, so that the balance shows neither. Nodes list late, too.
	hotFor = 2 * time.Minute

	// restLooks is how many histories of accounts at rest are looked at in one reading, those first that were not for
	// longest.
	restLooks = 2

	// wrongFor is how long a history may lag behind the balance before it is reported, by the times of blocks.
	wrongFor = 30 * time.Second
)

// ReadAddresses reads on in the histories of addresses and their token accounts. The accounts of an address are read
// apart. Histories are looked at where the balance changed, where a transaction names the account that was read for
// another one, where something moved lately, and of the others a few in turn.
//
// A history that leaves something out, as the balances before and after its transactions tell, is asked of another
// node. What no node explains is in Unread, and reading goes on.
func (d *driver) ReadAddresses(
	ctx context.Context,
	cursors []chain.AddressCursor,
	to uint64,
) (chain.AddressReading, error) {
	r, err := d.newReading(cursors, to)
	if err != nil {
		return chain.AddressReading{}, err
	}

	err = d.ask(ctx, r.readFrom)
	if err != nil && !r.any {
		return chain.AddressReading{}, aboveTip(err, to)
	}

	return r.result(err)
}

// reading is one call of ReadAddresses.
type reading struct {
	driver    *driver
	to        uint64 // height
	positions map[chain.Address]position
	since     map[chain.Address]time.Time
	left      []addressAccount // still to be read
	found     *findings

	mu      sync.Mutex
	any     bool // something was read
	at      blockHeader
	results map[solanago.PublicKey]accountResult
	touched map[solanago.PublicKey]bool
}

// accountResult is what was read of one account.
type accountResult struct {
	account addressAccount
	read    accountPosition
	more    bool
	unread  []chain.Unread
}

// position is chain.AddressCursor.Position: up to where each account of an address was read.
type position map[string]accountPosition

// accountPosition is the last transaction of an account that was read, and what it left, in base units.
type accountPosition struct {
	Signature string `json:"sig"`
	Slot      uint64 `json:"slot"`
	Height    uint64 `json:"height"`
	Time      int64  `json:"time"` // of its block, in Unix seconds
	Left      uint64 `json:"left"`
	// Unknown is set when it is not known what it left.
	Unknown bool `json:"unknown,omitempty"`
}

func (d *driver) newReading(cursors []chain.AddressCursor, to uint64) (*reading, error) {
	r := &reading{
		driver:    d,
		to:        to,
		positions: map[chain.Address]position{},
		since:     map[chain.Address]time.Time{},
		results:   map[solanago.PublicKey]accountResult{},
		touched:   map[solanago.PublicKey]bool{},
	}

	addresses := make([]chain.Address, len(cursors))

	for i, cursor := range cursors {
		at := position{}
		if cursor.Position != "" {
			if err := json.Unmarshal([]byte(cursor.Position), &at); err != nil {
				return nil, fmt.Errorf("the stored position of %s is unreadable: %w", cursor.Address, err)
			}
		}

		addresses[i] = cursor.Address
		r.positions[cursor.Address], r.since[cursor.Address] = at, cursor.Since
	}

	accounts, err := d.accountsOf(addresses)
	r.left, r.found = accounts, d.newFindings(addresses)

	return r, err
}

// readFrom reads from one node what is left.
func (r *reading) readFrom(ctx context.Context, e *endpoint) error {
	last, err := r.driver.blockOf(ctx, e, r.to)
	if err != nil {
		return err
	}

	infos, slot, err := e.accounts(ctx, keysOf(r.left), 0)
	if err != nil {
		return err
	}

	if slot < last.slot {
		if last, err = e.newestUpTo(ctx, slot); err != nil {
			return err
		}
	}

	due := r.choose(infos, last)
	r.any = true

	if r.at.Height < last.Height {
		r.at = last
	}

	h := historyReader{reading: r, endpoint: e, last: last, slot: slot}

	var (
		left   []addressAccount
		failed error
	)

	err = e.forEach(ctx, len(due), func(ctx context.Context, i int) error {
		err := h.readAccount(ctx, due[i].addressAccount, due[i].balance)
		if err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()

			left, failed = append(left, due[i].addressAccount), cmp.Or(failed, err)
		}

		return ctx.Err()
	})
	r.left = left

	return cmp.Or(err, failed)
}

// dueAccount is an account whose history is looked at.
type dueAccount struct {
	addressAccount
	balance uint64 // in base units
}

// choose returns the accounts whose histories are looked at: where one node could not show them, all that are left.
func (r *reading) choose(infos []*accountInfo, last blockHeader) []dueAccount {
	var due, rest []dueAccount

	looked := map[solanago.PublicKey]uint64{}

	for i, account := range r.left {
		balance := account.balance(infos[i])
		read := r.positions[account.address][account.key.String()]

		r.driver.seen.putBalance(account.key, balance, last.slot)
		r.driver.seen.change(account.key, func(seen *seenAccount) {
			seen.address = account.address
			known := seen.looked > 0 && seen.read == read.Signature

			switch {
			case r.any, !known && balance != read.Left, known && balance != seen.held,
				seen.touched > seen.looked, len(seen.backlog) > 0,
				read.Signature != "" && last.time().Sub(time.Unix(read.Time, 0)) < hotFor:
				due = append(due, dueAccount{account, balance})
			default:
				looked[account.key] = seen.looked
				rest = append(rest, dueAccount{account, balance})
			}
		})
	}

	slices.SortStableFunc(
		rest,
		func(a, b dueAccount) int { return cmp.Compare(looked[a.key], looked[b.key]) },
	)

	return append(due, rest[:min(len(rest), restLooks)]...)
}

// historyReader reads histories from one node.
type historyReader struct {
	*reading
	*endpoint

	last blockHeader // up to which is read
	slot uint64      // of the balances
}

// readAccount reads on in the history of an account that holds a balance. An error has another node asked.
func (h historyReader) readAccount(ctx context.Context, account addressAccount, balance uint64) error {
	d := h.driver
	from := h.positions[account.address][account.key.String()]

	list, reaches, isNew, err := h.backlogOf(ctx, account, from)
	if err != nil {
		return err
	}

	if reaches == listOpen {
		h.put(accountResult{account: account, read: from, more: true})
		return nil
	}

	// What is newer than the last block is listed again by the next reading.
	known := len(list)
	list = slices.DeleteFunc(
		slices.Clone(list),
		func(info signatureInfo) bool { return info.Slot > h.last.slot },
	)
	isNew = isNew && len(list) == known

	rest := list[:len(list)-min(len(list), maxReads)]
	chosen := slices.Clone(list[len(rest):])
	slices.Reverse(chosen)

	result, err := h.readListed(ctx, account, from, chosen)
	if err != nil {
		return err
	}

	result.more = len(rest) > 0

	// A history that was read to its end has to explain the balance.
	var wrong error
	if isNew && !result.more && result.explains(reaches) && result.read.Left != balance {
		wrong = fmt.Errorf(
			"the node's history of %s leaves something out: it ends with %d, the account holds %d",
			account.key, result.read.Left, balance,
		)
	}

	d.seen.change(account.key, func(seen *seenAccount) {
		seen.read, seen.backlog, seen.reaches = result.read.Signature, rest, reaches
		seen.looked, seen.held = h.slot, balance

		if wrong == nil {
			seen.wrong = time.Time{}
		} else if seen.wrong.IsZero() {
			seen.wrong = h.last.time()
		}

		// In every reading, until the rest is read and the history explains the balance.
		if !isNew || result.more || wrong != nil && h.last.time().Sub(seen.wrong) < wrongFor {
			seen.looked = 0
			return
		}

		if wrong != nil {
			seen.wrong = h.last.time()
			result.unread = append(result.unread, chain.Unread{
				Address: account.address,
				Height:  cmp.Or(result.read.Height, h.last.Height),
				Why:     wrong.Error(),
			})
		}
	})

	h.put(result)

	if (wrong != nil || len(result.unread) > 0) && len(d.nodes.Nodes) > 1 {
		return fmt.Errorf("%w: the history of %s is not complete", failover.ErrLagging, account.key)
	}

	return nil
}

// explains reports whether it is known what the history leaves: that of an account without transactions nothing.
func (a accountResult) explains(reaches listState) bool {
	return a.read.Signature != "" && !a.read.Unknown || a.read.Signature == "" && reaches == listAll
}

// put stores the result of an account in place of that of another node.
func (h historyReader) put(result accountResult) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.results[result.account.key] = result
}

// backlogOf returns the transactions of an account after a position, newest first, and how far they go back. isNew is
// set when they were listed just now.
func (h historyReader) backlogOf(
	ctx context.Context,
	account addressAccount,
	from accountPosition,
) (list []signatureInfo, reaches listState, isNew bool, err error) {
	seen := h.driver.seen.get(account.key)

	// Another process has read on, or what was read could not be stored.
	if seen.read != from.Signature {
		seen.backlog = nil
	}

	if seen.reaches != listOpen && len(seen.backlog) > 0 {
		return seen.backlog, seen.reaches, false, nil
	}

	if seen.reaches != listOpen {
		seen.backlog = nil
	}

	list, reaches, err = h.signaturesAfter(
		ctx, account.key.String(), from, h.since[account.address], h.slot, seen.backlog,
	)
	if err == nil {
		h.driver.seen.change(account.key, func(seen *seenAccount) {
			seen.read, seen.backlog, seen.reaches = from.Signature, list, reaches
		})
	}

	return list, reaches, true, err
}

// readListed reads listed transactions of an account, in order of time, after a position.
func (h historyReader) readListed(
	ctx context.Context,
	account addressAccount,
	from accountPosition,
	list []signatureInfo,
) (accountResult, error) {
	result := accountResult{account: account, read: from}
	txs := make([]listedTx, len(list))

	err := h.forEach(ctx, len(list), func(ctx context.Context, i int) (err error) {
		txs[i], err = h.readTx(ctx, list[i])
		return err
	})
	if err != nil {
		return result, err
	}

	check := balanceCheck{account: account.holdingAccount, expected: from.Left}
	check.known = from.Signature != "" && !from.Unknown

	for i, tx := range txs {
		before := result.read
		result.read = accountPosition{
			Signature: list[i].Signature,
			Slot:      list[i].Slot,
			Height:    tx.block.Height,
			Time:      tx.block.time().Unix(),
			Unknown:   true,
		}

		if tx.unread != nil {
			check.known = false

			result.unread = append(result.unread, chain.Unread{
				Address: account.address,
				Height:  tx.block.Height,
				TxHash:  tx.unread.hash,
				Why:     tx.unread.why,
			})

			continue
		}

		if err := check.next(tx.executedTx); err != nil {
			result.unread = append(result.unread, chain.Unread{
				Address: account.address,
				Height:  cmp.Or(before.Height, tx.block.Height),
				Why:     err.Error(),
			})
		}

		result.read.Left, result.read.Unknown = check.expected, !check.known

		h.found.add(tx.confirmedTx)
		h.driver.seen.putLeft(account.holdingAccount, tx.hash, check.expected)

		h.touch(tx.confirmedTx)
	}

	return result, nil
}

// touch has the histories of all accounts looked at that a transaction names.
func (h historyReader) touch(tx confirmedTx) {
	h.driver.seen.touch(tx.keys, tx.block.slot)

	h.mu.Lock()
	defer h.mu.Unlock()

	for _, key := range tx.keys {
		h.touched[key] = true
	}
}

// listedTx is a transaction of a history, or why it cannot be read.
type listedTx struct {
	confirmedTx
	unread *unreadable
}

func (h historyReader) readTx(ctx context.Context, info signatureInfo) (tx listedTx, err error) {
	tx.confirmedTx, err = h.driver.fetchListed(ctx, h.endpoint, info.Signature)

	if unread, ok := errors.AsType[*unreadable](err); ok {
		tx.unread = unread
		tx.block, err = h.header(ctx, info.Slot)
	}

	return tx, err
}

// result returns what was read. err is why some addresses could not be read.
func (r *reading) result(err error) (chain.AddressReading, error) {
	blocks, blocksErr := r.found.blocks()
	if blocksErr != nil {
		return chain.AddressReading{}, blocksErr
	}

	out := chain.AddressReading{Blocks: blocks, At: r.at.ref(), More: r.driver.seen.notLooked(r.touched)}
	if err != nil && !errors.Is(err, failover.ErrLagging) {
		out.Failed = failover.Fault(r.driver.network.Slug, err)
	}

	moved := map[chain.Address]bool{}

	for _, key := range slices.SortedFunc(maps.Keys(r.results), func(a, b solanago.PublicKey) int {
		return slices.Compare(a[:], b[:])
	}) {
		result := r.results[key]
		address := result.account.address

		if result.more {
			out.More = append(out.More, address)
		}

		out.Unread = append(out.Unread, result.unread...)

		if at := r.positions[address]; at[key.String()] != result.read {
			at[key.String()], moved[address] = result.read, true
		}
	}

	for _, address := range slices.Sorted(maps.Keys(moved)) {
		text, err := json.Marshal(r.positions[address])
		if err != nil {
			return chain.AddressReading{}, fmt.Errorf("encode the position of %s: %w", address, err)
		}

		out.Moved = append(out.Moved, chain.AddressCursor{
			Address:  address,
			Since:    r.since[address],
			Position: string(text),
		})
	}

	slices.Sort(out.More)
	out.More = slices.Compact(out.More)

	return out, nil
}
