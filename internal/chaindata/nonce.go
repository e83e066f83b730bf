package chaindata

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// NonceSpend returns what a transaction that names the nonce uses up.
func NonceSpend(n chain.DurableNonce) chain.Spend {
	return chain.Spend{Sender: n.Account, Value: n.Value}
}
