package solana

import "fmt"

// balanceCheck follows the balance of an account through its history.
type balanceCheck struct {
	account  holdingAccount
	expected uint64 // what the next transaction finds, in base units
	known    bool   // whether expected is known
}

// next takes a transaction into account. It fails where that does not find the expected balance.
func (c *balanceCheck) next(tx executedTx) error {
	expected, known := c.expected, c.known
	before, after, named := c.account.balanceChange(tx)
	c.expected, c.known = after, named

	if !named || known && before != expected {
		return fmt.Errorf(
			"the node's history of %s leaves something out: transaction %s found %d, left before were %d",
			c.account.key, tx.hash, before, expected,
		)
	}

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
