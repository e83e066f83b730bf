package sim

// Transactions that call a contract, so that only their execution shows what they do.

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
)

// Result is what a transaction does in the block that executes it.
type Result struct {
	// Failed reverts the transaction: it moves nothing and pays its fee.
	Failed bool

	// Outputs are what it pays, in this order. A payment of 0 is shown nowhere and takes an index.
	Outputs []chain.Output
}

// contractCall is what a transaction does in place of its own transfers.
type contractCall struct {
	claim []move // shown in the pool
	// execute returns the moves in a block of a height, after that many forks.
	execute func(height, branch uint64) (moves []move, failed bool)
}

// PayVariable puts a transaction of a new account into the pool and returns its hash. The pool shows
// the claim, or nothing when it is zero. Each block that includes the transaction executes it anew:
// result gets the block's height and the number of forks so far. The account always holds what it pays.
//
// The function runs with the network locked, so it must not call it. The same arguments must give the
// same result.
func (c *Chain) PayVariable(claim chain.Output, result func(height, branch uint64) Result) string {
	var (
		call  contractCall
		payer account
	)

	movesOf := func(outputs []chain.Output) []move {
		moves := make([]move, 0, len(outputs))
		for _, output := range outputs {
			moves = append(moves, move{transfer: c.mustTransfer(output), from: payer, minted: true})
		}

		return moves
	}

	call.execute = func(height, branch uint64) ([]move, bool) {
		r := result(height, branch)
		return movesOf(r.Outputs), r.Failed
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	payer = c.newAccount()

	if claim != (chain.Output{}) {
		call.claim = movesOf([]chain.Output{claim})
	}

	return c.queueCallFrom(payer, call)
}

// queueCall puts a contract call of a new account into the pool and returns its hash.
func (c *Chain) queueCall(call contractCall) string {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.queueCallFrom(c.newAccount(), call)
}

// queueCallFrom puts a contract call into the pool. Its transaction transfers 0 to its own sender.
func (c *Chain) queueCallFrom(from account, call contractCall) string {
	hash := c.queueFrom(from, []transfer{{kind: kindValue, to: from}})
	c.calls[hash] = call

	return hash
}

// mustTransfer returns the transfer of an output. It panics when the network cannot make it.
func (c *Chain) mustTransfer(output chain.Output) transfer {
	t, err := c.transferOf(output)
	if err != nil {
		panic(fmt.Sprintf("sim: the payment of %s to %s cannot be made: %v", output.Amount, output.To, err))
	}

	return t
}
