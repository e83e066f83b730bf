package chaindata

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// NonceSpend returns the spend of a transaction that uses the nonce.
func NonceSpend(n chain.DurableNonce) chain.Spend {
	return chain.Spend{Sender: n.Account, Value: n.Value}
}
