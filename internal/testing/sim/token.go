package sim

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
)

// FeeLog is what the logs of a token's transfer show of its fee.
type FeeLog int

// The logs of a transfer of 100 with a fee of 1. The receiver's balance rises by 99 in each case.
const (
	LogNet          FeeLog = iota // 99 to the receiver, 1 from the sender to the collector
	LogGross                      // 100 to the receiver, which is wrong
	LogGrossThenFee               // 100 to the receiver, then 1 from the receiver to the collector
)

// TokenRules are how a token's contract differs from a plain one. The zero value is a plain token.
type TokenRules struct {
	// FeeBPS is the fee on every transfer, in basis points of its amount, rounded down. Defaults to 0.
	FeeBPS int

	// Log is what the logs show of the fee.
	Log FeeLog

	// Collector receives the fees. Defaults to the token's contract.
	Collector chain.Address

	// Refused are addresses that the contract pays nothing: a transfer to one of them returns false, moves nothing and
	// logs nothing. The transaction does not revert.
	Refused []chain.Address
}

// SetToken sets the rules of a token for the blocks to come, a new branch after Fork included. The
// pool always shows the amount before the fee. It panics when the fee is not between 0 and the amount.
func (c *Chain) SetToken(symbol string, rules TokenRules) {
	token := c.token(symbol)

	if rules.FeeBPS < 0 || rules.FeeBPS > 10_000 {
		panic(fmt.Sprintf("sim: a fee of %d basis points is not between 0 and 10000", rules.FeeBPS))
	}

	if rules.Collector == "" {
		rules.Collector = token.Contract
	}

	mustAccount(rules.Collector)
	c.mu.Lock()
	defer c.mu.Unlock()

	c.tokens[token.ID] = rules
}

// TransferFrom puts a transaction of a new account into the pool that moves a token out of another
// address, and returns its hash. Allowances are not simulated: it reverts only when from holds too
// little. Anybody can do so with an amount of 0.
func (c *Chain) TransferFrom(from, to chain.Address, symbol string, amount chain.Amount) string {
	moves := []move{c.tokenMove(from, to, symbol, amount)}

	return c.queueCall(contractCall{
		claim:   moves,
		execute: func(uint64, uint64) ([]move, bool) { return moves, false },
	})
}

// LogTransfer puts a transaction of a new account into the pool that makes the token's contract log a
// transfer between any two addresses, and returns its hash. No balance changes, and the pool shows nothing.
func (c *Chain) LogTransfer(from, to chain.Address, symbol string, amount chain.Amount) string {
	logged := c.tokenMove(from, to, symbol, amount)
	logged.logOnly = true

	return c.queueCall(contractCall{
		execute: func(uint64, uint64) ([]move, bool) { return []move{logged}, false },
	})
}

func (c *Chain) tokenMove(from, to chain.Address, symbol string, amount chain.Amount) move {
	output := chain.Output{To: to, AssetID: c.token(symbol).ID, Amount: amount}

	return move{transfer: c.mustTransfer(output), from: mustAccount(from)}
}

// token returns the token of a symbol. It panics when there is none.
func (c *Chain) token(symbol string) chain.Asset {
	asset := c.asset(symbol)
	if asset.Kind != chain.Token {
		panic(fmt.Sprintf("sim: asset %q of network %s is not a token", symbol, c.network.Slug))
	}

	return asset
}
