package invoicestate

import (
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

// PaymentKey returns the key of the payment's transfer on its network.
func PaymentKey(p invoice.Payment) invoice.TransferKey {
	return invoice.TransferKey{TxHash: p.TxHash, Index: p.TxIndex, To: p.Address, AssetID: p.AssetID}
}

// DetectedEvent returns the event type of the payment's detection, by the kind of object that was paid.
func DetectedEvent(p *invoice.Payment) event.Type { // spec 6.9
	if p.InvoiceID != "" {
		return event.InvoicePaymentDetected
	}

	return event.DepositPaymentDetected
}

// confirmedEvent returns the event type of the payment's confirmation, by the kind of object that was paid.
func confirmedEvent(p *invoice.Payment) event.Type { // spec 6.10
	if p.InvoiceID != "" {
		return event.InvoicePaymentConfirmed
	}

	return event.DepositPaymentConfirmed
}
