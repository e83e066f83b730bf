package payout

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// delivered returns how much of a payout of tokens a transaction in a block brought to the destination, in
// base units: the net of the block's logs, separately for each payout of a batch. A token may return false
// and move nothing, or take a fee (pitfall 20). measured is false for native coin, and for a transaction that
// is in no block.
func (p Payout) delivered(t wallet.Transaction) (amount chain.Amount, measured bool) { // spec D12.7
	inBlock := t.State == wallet.Included || t.State == wallet.Confirmed
	if p.Contract == "" || !inBlock {
		return chain.Amount{}, false
	}

	return walletstate.DeliveredTo(t, 0), true
}

// movedNothing reports whether a final block executed a transaction that brought nothing to the destination.
func (p Payout) movedNothing(t wallet.Transaction) bool {
	amount, measured := p.delivered(t)

	return measured && t.State == wallet.Confirmed && amount.IsZero()
}

// executedInVain reports whether the payout failed because its token moved nothing, or it was reverted.
func (p Payout) executedInVain() bool {
	return p.Status == Failed && p.FailureCode == wallet.FailReverted && p.Contract != ""
}

// shortBy returns the amount that a block brought to the destination if it is below the payout's amount, else
// nil.
func (p Payout) shortBy(t wallet.Transaction) *chain.Amount {
	amount, measured := p.delivered(t)
	if !measured || !amount.Less(p.Amount) {
		return nil
	}

	return &amount
}

// nothingMovedMessage explains a payout whose token moved nothing.
const nothingMovedMessage = "The transaction was executed, and the token moved nothing to the destination: its " +
	"contract refused the transfer without reverting it. The network fee was spent; compare the wallet's balance, " +
	"and ask the token's issuer why."
