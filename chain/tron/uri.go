package tron

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// PaymentURI returns the bare address: Tron has no common payment URI.
func (d *driver) PaymentURI(to chain.Address, _ chain.Asset, _ chain.Amount) string {
	return string(to)
}
