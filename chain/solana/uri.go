package solana

import (
	"crypto/sha256"
	"net/url"
	"strings"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// PaymentURI returns a Solana Pay transfer request: solana:<to>?amount=<whole units>, with
// spl-token=<mint> for a token. Source: docs.solanapay.com, transfer request.
func (d *driver) PaymentURI(to chain.Address, asset chain.Asset, amount chain.Amount) string {
	query := "?amount=" + amount.Decimal(asset.Decimals).String()
	if asset.Kind == chain.Token {
		query += "&spl-token=" + url.QueryEscape(string(asset.Contract))
	}

	return "solana:" + string(to) + query
}

// RequestURI returns PaymentURI with label and message, and with a reference where Config.Reference asks for it.
func (d *driver) RequestURI(
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
	request chain.PaymentRequest,
) string {
	uri := d.PaymentURI(to, asset, amount)

	if request.ID != "" && d.config.Reference {
		uri += "&reference=" + string(Reference(request.ID))
	}

	if request.Label != "" {
		uri += "&label=" + escape(request.Label)
	}

	if request.Message != "" {
		uri += "&message=" + escape(request.Message)
	}

	return uri
}

// escape escapes a value of a query. A space is %20, as in the examples of Solana Pay.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Reference returns the key that a wallet names in its payment of the request of an id, such as an invoice's. One
// call of getSignaturesForAddress with it lists those payments. It proves nothing: anybody can name it.
//
// It is the SHA-256 of the id after a domain, of which nobody has a private key.
func Reference(id string) chain.Address {
	return chain.Address(solanago.PublicKey(sha256.Sum256([]byte(referenceDomain + id))).String())
}

const referenceDomain = "payments/solana/reference:"
