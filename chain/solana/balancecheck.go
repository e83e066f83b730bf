package solana

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// balanceCheck follows the balance of an account through its history.
type balanceCheck struct {
	account  holdingAccount
	expected uint64 // what the next transaction finds, in base units
	known    bool   // whether expected is known
	passed   bool   // whether the present balance was reached and compared
}

// next checks that a transaction finds the expected balance.
func (c *balanceCheck) next(tx executedTx) error {
	before, after, named := c.account.balanceChange(tx)
	if !named || c.known && before != c.expected {
		return fmt.Errorf(
			"the node's history of %s leaves something out: transaction %s found %d, left before were %d",
			c.account.key, tx.hash, before, c.expected,
		)
	}

	c.expected, c.known = after, true

	return nil
}

// final checks that the history ends with the present balance.
func (c *balanceCheck) final(balance uint64) error {
	if c.known && balance != c.expected {
		return fmt.Errorf(
			"the node's history of %s leaves something out: it ends with %d, the account holds %d",
			c.account.key, c.expected, balance,
		)
	}

	return nil
}

// balanceBefore sets the balance before the first transaction of the range: what the transaction before it left;
// that of the last reading; nothing where the node has everything; unknown where it has forgotten what was before.
func (h historyReader) balanceBefore(
	ctx context.Context,
	check *balanceCheck,
	older *signatureInfo,
	from uint64,
) error {
	if older != nil {
		tx, err := h.driver.fetchListed(ctx, h.endpoint, older.Signature)
		if _, unreadable := errors.AsType[*unreadable](
			err,
		); unreadable ||
			errors.Is(err, failover.ErrPruned) {
			return nil
		}

		if err != nil {
			return err
		}

		_, check.expected, check.known = check.account.balanceChange(tx.executedTx)

		return nil
	}

	if balance, ok := h.driver.balances.before(check.account.key, from); ok {
		check.expected, check.known = balance, true
		return nil
	}

	oldest, err := h.oldestSlot(ctx)
	check.known = err == nil && oldest <= 1

	return err
}

// missedBelow returns the transactions below a range that the last reading lacks, newest first: that reading ended with
// another balance than the newest of them, older, left. Another node had left them out, or listed them late. They are
// read back to the one that found the balance of that reading, maxMissed at most. Where ranges are read to their ends
// none is returned, and lacksOlder is set.
func (h historyReader) missedBelow(
	ctx context.Context,
	check balanceCheck,
	older *signatureInfo,
	from uint64,
) (missed []confirmedTx, lacksOlder bool, err error) {
	balance, ok := h.driver.balances.before(check.account.key, from)
	if older == nil || !ok || !check.known || check.expected == balance {
		return nil, false, nil
	}

	if h.unbounded {
		return nil, true, nil
	}

	list, err := h.signaturesBefore(ctx, check.account.key.String(), older.Signature, maxMissed-1)
	if err != nil {
		return nil, false, err
	}

	for _, info := range append([]signatureInfo{*older}, list...) {
		tx, err := h.driver.fetchListed(ctx, h.endpoint, info.Signature)
		if _, isUnread := unreadTx(err); isUnread {
			break
		}

		if err != nil {
			return nil, false, err
		}

		missed = append(missed, tx)

		if before, _, named := check.account.balanceChange(tx.executedTx); named && before == balance {
			break
		}
	}

	return missed, false, nil
}
