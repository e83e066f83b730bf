package solana

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// historyReader reads the histories of a scan from one node.
type historyReader struct {
	*historyScan
	*endpoint

	last blockHeader // of the range
	slot uint64      // of the balances
}

// maxReadsPerAccount bounds the calls for the transactions of one account in one reading, so that nobody waits
// for another's dust.
const maxReadsPerAccount = 24

// maxMissed bounds the transactions below a range of one account that are read in one reading.
const maxMissed = maxReadsPerAccount / 2

// readAccount reads the history of an account with a balance, in base units. What cannot be read, or not yet, is
// returned; an error is the node's.
func (h historyReader) readAccount(
	ctx context.Context,
	account addressAccount,
	balance uint64,
) (*chain.Unread, error) {
	d := h.driver

	from, needed := d.balances.plan(account.key, balance, h.from, h.last.Height)
	if needed && balance == 0 && !h.unbounded && !d.balances.has(account.key) {
		// Nothing is left there, and coin leaves our addresses only after it was credited.
		d.balances.put(account.key, 0, from, h.last.Height, false)
		return nil, nil
	}

	if !needed {
		d.balances.skipped(account.key, h.last.Height)
		return nil, nil
	}

	history, err := h.history(ctx, account, balance, from)
	if err != nil {
		if isNodeError(err) || h.unbounded && errors.Is(err, failover.ErrLagging) {
			return nil, err
		}

		d.balances.unsettle(account.key)

		return &chain.Unread{Address: account.address, Height: h.from, Why: err.Error()}, nil
	}

	newest := uint64(0)

	h.mu.Lock()
	for _, tx := range history.txs {
		h.byHash[tx.hash] = tx
		newest = max(newest, tx.block.Height)
	}
	h.mu.Unlock()

	// With newer transactions the balance is a later one, for which the range is not complete.
	switch {
	case history.unread != nil || newest > h.last.Height:
		d.balances.unsettle(account.key)
	case !history.lacksOlder:
		d.balances.put(account.key, balance, from, h.last.Height, newest > 0 || balance > 0)
	}

	if history.unread != nil && history.unread.Height > h.last.Height {
		return nil, nil
	}

	return history.unread, nil
}

// isNodeError reports whether an error concerns the node and not one account.
func isNodeError(err error) bool {
	failure, ok := errors.AsType[*failover.Failure](err)

	return ok && failure.Kind != failover.Garbled ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, failover.ErrPruned)
}

// accountHistory is what was read of an account's history, in order of time.
type accountHistory struct {
	txs    []confirmedTx
	unread *chain.Unread // nil when it is complete
	// lacksOlder is set when transactions below the range are in no reading, and not in this one.
	lacksOlder bool
}

// history reads the transactions of an account and checks that they explain its balance.
func (h historyReader) history(
	ctx context.Context,
	account addressAccount,
	balance, from uint64,
) (accountHistory, error) {
	slot, err := h.slotAt(ctx, h.endpoint, from)
	if err != nil {
		return accountHistory{}, err
	}

	list, older, err := h.signatures(ctx, account.key.String(), slot, h.slot)
	if err != nil {
		return accountHistory{}, err
	}

	slices.Reverse(list)

	check := balanceCheck{account: account.holdingAccount}
	if err := h.balanceBefore(ctx, &check, older, from); err != nil {
		return accountHistory{}, err
	}

	missed, lacksOlder, err := h.missedBelow(ctx, check, older, from)
	if err != nil {
		return accountHistory{}, err
	}

	history, err := h.readListed(ctx, account, list, &check, balance)
	if err != nil {
		return accountHistory{}, err
	}

	slices.Reverse(missed)
	history.txs, history.lacksOlder = append(missed, history.txs...), lacksOlder

	if history.unread == nil && !check.passed {
		err = check.final(balance)
	}

	return history, err
}

// readListed reads listed transactions in order of time. Slots with several are read as blocks.
func (h historyReader) readListed(
	ctx context.Context,
	account addressAccount,
	list []signatureInfo,
	check *balanceCheck,
	balance uint64,
) (accountHistory, error) {
	var history accountHistory

	reads := 0

	for start := 0; start < len(list); {
		end := start + 1
		for end < len(list) && list[end].Slot == list[start].Slot {
			end++
		}

		if reads >= maxReadsPerAccount && !h.unbounded {
			history.setUnread(chain.Unread{
				Address: account.address,
				Height:  max(h.from, history.txs[len(history.txs)-1].block.Height+1),
			})

			return history, nil
		}

		if list[start].Slot > h.slot && !check.passed {
			if err := check.final(balance); err != nil {
				return accountHistory{}, err
			}

			check.passed = true
		}

		txs, calls, err := h.readSlot(ctx, list[start:end])
		if err != nil {
			return accountHistory{}, err
		}

		reads += calls

		for _, tx := range txs {
			if err := history.add(tx, account, check); err != nil {
				return accountHistory{}, err
			}
		}

		start = end
	}

	return history, nil
}

// listedTx is a transaction of a history, or why it cannot be read.
type listedTx struct {
	confirmedTx
	unread *unreadable
}

// add adds a transaction to the history and checks it.
func (a *accountHistory) add(tx listedTx, account addressAccount, check *balanceCheck) error {
	if tx.unread != nil {
		check.known = false

		a.setUnread(chain.Unread{
			Address: account.address,
			Height:  tx.block.Height,
			TxHash:  tx.unread.hash,
			Why:     tx.unread.why,
		})

		return nil
	}

	if err := check.next(tx.executedTx); err != nil {
		return err
	}

	a.txs = append(a.txs, tx.confirmedTx)

	return nil
}

func (a *accountHistory) setUnread(unread chain.Unread) {
	if a.unread == nil {
		a.unread = &unread
	}
}

// readSlot reads the transactions of one slot, and returns the number of calls that it took.
func (h historyReader) readSlot(ctx context.Context, list []signatureInfo) ([]listedTx, int, error) {
	if len(list) > 2 {
		txs, err := h.readBlock(ctx, list)
		return txs, 1, err
	}

	var txs []listedTx

	for _, info := range list {
		tx, err := h.driver.fetchListed(ctx, h.endpoint, info.Signature)

		unread, isUnread := errors.AsType[*unreadable](err)
		if isUnread {
			tx.block, err = h.header(ctx, info.Slot)
		}

		if err != nil {
			return nil, 0, err
		}

		txs = append(txs, listedTx{tx, unread})
	}

	return txs, 2 * len(list), nil
}

// readBlock reads listed transactions of one slot from its block.
func (h historyReader) readBlock(ctx context.Context, list []signatureInfo) ([]listedTx, error) {
	block, err := h.block(ctx, list[0].Slot, "accounts")
	if err != nil {
		return nil, h.blockError(ctx, 0, err)
	}

	byHash := map[string]blockTx{}

	for _, tx := range block.Transactions {
		if len(tx.Transaction.Signatures) > 0 {
			byHash[tx.Transaction.Signatures[0]] = tx
		}
	}

	block.Transactions = nil

	var txs []listedTx

	for _, info := range list {
		encoded, ok := byHash[info.Signature]
		if !ok {
			return nil, h.Garbled("it lists transaction %s in a block without it", info.Signature)
		}

		tx, err := h.executedOf(encoded)
		if err == nil {
			err = h.driver.checkOpened(ctx, h.endpoint, tx)
		}

		unread, isUnread := errors.AsType[*unreadable](err)
		if err != nil && !isUnread {
			return nil, err
		}

		txs = append(txs, listedTx{confirmedTx{tx, block}, unread})
	}

	return txs, nil
}
