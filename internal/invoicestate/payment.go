package invoicestate

import (
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

// PaymentKey returns the transfer that the payment is, of its network.
func PaymentKey(p invoice.Payment) invoice.TransferKey {
	return invoice.TransferKey{TxHash: p.TxHash, Index: p.TxIndex, To: p.Address, AssetID: p.AssetID}
}

// DetectedEvent returns the type of the event of its detection, by what was paid.
func DetectedEvent(p *invoice.Payment) event.Type { // spec 6.9
	if p.InvoiceID != "" {
		return event.InvoicePaymentDetected
	}

	return event.DepositPaymentDetected
}

// confirmedEvent returns the type of the event of its confirmation, by what was paid.
func confirmedEvent(p *invoice.Payment) event.Type { // spec 6.10
	if p.InvoiceID != "" {
		return event.InvoicePaymentConfirmed
	}

	return event.DepositPaymentConfirmed
}
