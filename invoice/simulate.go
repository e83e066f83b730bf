package invoice

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// Outcome is the result that a simulated payment shall have.
type Outcome string

// The outcomes: of invoices detected, paid, underpaid, overpaid, late, orphaned and dropped; of
// deposit addresses detected, confirmed, orphaned and dropped.
const (
	SimulateDetected  Outcome = "detected"
	SimulateConfirmed Outcome = "confirmed"
	SimulatePaid      Outcome = "paid"
	SimulateUnderpaid Outcome = "underpaid"
	SimulateOverpaid  Outcome = "overpaid"
	SimulateLate      Outcome = "late"
	SimulateOrphaned  Outcome = "orphaned"
	SimulateDropped   Outcome = "dropped"
)

var (
	invoiceOutcomes = []Outcome{ // spec D9.13
		SimulateDetected,
		SimulatePaid,
		SimulateUnderpaid,
		SimulateOverpaid,
		SimulateLate,
		SimulateOrphaned,
		SimulateDropped,
	}
	depositOutcomes = []Outcome{SimulateDetected, SimulateConfirmed, SimulateOrphaned, SimulateDropped}
)

// SimulateParams ask for a payment without a network transaction, in test mode.
type SimulateParams struct {
	Owner event.Owner
	// InvoiceID or DepositAddressID is the object that is paid.
	InvoiceID, DepositAddressID string
	// OptionID is the option that is paid; empty: the selected one, else the first. For the outcomes orphaned
	// and dropped it selects the option of the payment that disappears; empty: any.
	OptionID string
	// Asset is a symbol on the deposit address's network; deposit addresses only. For the outcomes orphaned
	// and dropped it selects the asset of the payment that disappears.
	Asset string
	// Amount is in base units; 0: the amount that the outcome needs. Deposit addresses need one for a new
	// payment.
	Amount  chain.Amount
	Outcome Outcome
}

// Simulated is the result of a simulation: the payment, and the invoice that it pays, if any.
type Simulated struct {
	Invoice Invoice
	Payment Payment
}

// PrepareSimulate checks the parameters, and prepares the selection of the option if it is not selected yet.
// With a live owner it is fault.Forbidden, test_mode_only.
//
// The returned Commit makes the payment. The outcomes orphaned and dropped move the latest simulated payment,
// of the named option or asset, that does not have that outcome yet. Without such a payment, one is made
// first. The outcome late expires an invoice that is still open.
func (s *Service) PrepareSimulate(ctx context.Context, p SimulateParams) (Commit[Simulated], error) {
	if err := checkSimulate(p); err != nil {
		return nil, err
	}

	return s.intake.PrepareSimulate(ctx, s, p)
}

// Simulate is PrepareSimulate and its commit in a transaction of its own.
func (s *Service) Simulate(ctx context.Context, p SimulateParams) (Invoice, Payment, error) {
	out, err := commit(ctx, s, func() (Commit[Simulated], error) { return s.PrepareSimulate(ctx, p) })

	return out.Invoice, out.Payment, err
}

func checkSimulate(p SimulateParams) error { // spec D11.27
	if p.Owner.Livemode {
		return fault.New(
			fault.Forbidden, "test_mode_only", "payments can only be simulated with a test key",
		)
	}

	if chain.MaxTransfer.Less(p.Amount) {
		return invalid("amount", "the amount is more than one transfer can move")
	}

	outcomes := invoiceOutcomes
	if p.InvoiceID == "" {
		outcomes = depositOutcomes
	}

	if !slices.Contains(outcomes, p.Outcome) {
		return invalid("outcome", "the outcome %q is none of %v", clip(string(p.Outcome)), outcomes)
	}

	return nil
}
