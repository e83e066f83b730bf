package evm

import (
	"strconv"

	"github.com/seed-8ee7f392/payments/chain"
)

// PaymentURI returns an EIP-681 request: ethereum:<to>@<chain>?value=<wei>, or for a token
// ethereum:<contract>@<chain>/transfer?address=<to>&uint256=<amount>.
func (d *driver) PaymentURI(to chain.Address, asset chain.Asset, amount chain.Amount) string {
	id := strconv.FormatUint(d.network.ChainID, 10)
	if asset.Kind == chain.Token {
		target := "ethereum:" + string(asset.Contract) + "@" + id
		return target + "/transfer?address=" + string(to) + "&uint256=" + amount.String()
	}

	return "ethereum:" + string(to) + "@" + id + "?value=" + amount.String()
}
