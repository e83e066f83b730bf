package invoice

import (
	"context"
	"strings"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// HintResult is the result of a payer's hint.
type HintResult string

// The results. A transaction with HintNotFound may still be on its way to our node.
const (
	HintFound    HintResult = "found"    // it pays the object of the hint, and is recorded
	HintForeign  HintResult = "foreign"  // it exists, but does not pay the object
	HintFailed   HintResult = "failed"   // it is in a block and its execution failed: it moved nothing
	HintNotFound HintResult = "unknown"  // no network in question has it
	HintUnusable HintResult = "unusable" // no network in question can look transactions up
)

// Hint looks up a transaction that a payer names as payment of the invoice, and stores the payment if the
// network has it.
func (s *Service) Hint(ctx context.Context, invoiceID, txHash string) (HintResult, error) {
	txHash, err := checkHash(txHash)
	if err != nil {
		return "", err
	}

	return commit(ctx, s, func() (Commit[HintResult], error) {
		return s.intake.PrepareHint(ctx, invoiceID, txHash)
	})
}

// HintDeposit is Hint for an owner's deposit address.
func (s *Service) HintDeposit(
	ctx context.Context,
	owner event.Owner,
	depositID, txHash string,
) (HintResult, error) {
	txHash, err := checkHash(txHash)
	if err != nil {
		return "", err
	}

	return commit(ctx, s, func() (Commit[HintResult], error) {
		return s.intake.PrepareDepositHint(ctx, owner, depositID, txHash)
	})
}

// checkHash returns a transaction hash without white space around it. It checks the length only.
func checkHash(txHash string) (string, error) {
	txHash = strings.TrimSpace(txHash)
	if txHash == "" {
		return "", fault.Param("tx_hash", "parameter_missing", "name the hash of the transaction")
	}

	return txHash, checkText("tx_hash", txHash, maxHash)
}

// maxHash is the longest transaction hash, in characters.
const maxHash = 128
