package bitcoin

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// PaymentURI returns a BIP-21 URI: bitcoin:<address>?amount=<whole bitcoins>.
func (d *driver) PaymentURI(to chain.Address, _ chain.Asset, amount chain.Amount) string {
	return "bitcoin:" + string(to) + "?amount=" + amount.Decimal(decimals).String()
}
