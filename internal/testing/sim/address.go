package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// An address is "sim1", the 20 bytes of the account in hex, and a checksum in hex. The checksum is the
// first 4 bytes of the SHA-256 of what precedes it. An address has 52 characters in lower case; all
// upper case is parsed too.
const (
	addressPrefix = "sim1"
	addressLength = len(addressPrefix) + 2*20 + 2*4
)

// account is the first 20 bytes of the SHA-256 of a compressed secp256k1 public key.
type account [20]byte

func (a account) address() chain.Address {
	body := addressPrefix + hex.EncodeToString(a[:])
	return chain.Address(body + checksum(body))
}

func checksum(body string) string {
	h := sha256.Sum256([]byte(body))
	return hex.EncodeToString(h[:4])
}

func parseAccount(s string) (account, error) {
	refuse := func(why string) (account, error) {
		shown := s
		if len(shown) > 64 {
			shown = shown[:64] + "…"
		}

		return account{}, fault.New(
			fault.Invalid, "address_invalid", "%q is not an address of this network: %s",
			shown, why,
		)
	}
	if len(s) != addressLength {
		return refuse("an address has 52 characters")
	}

	if s == strings.ToUpper(s) {
		s = strings.ToLower(s)
	}

	if !strings.HasPrefix(s, addressPrefix) {
		return refuse("an address begins with sim1")
	}

	body, sum := s[:addressLength-8], s[addressLength-8:]

	var a account

	_, err := hex.Decode(a[:], []byte(body[len(addressPrefix):]))
	if err != nil || body != strings.ToLower(body) {
		return refuse("after sim1 come hex digits in one case")
	}

	if sum != checksum(body) {
		return refuse("its checksum does not match, so a character is wrong")
	}

	return a, nil
}

// ParseAddress returns an address in lower case. A wrong form or checksum is fault.Invalid.
func (c *Chain) ParseAddress(s string) (chain.Address, error) {
	parsed, err := parseAccount(s)
	if err != nil {
		return "", err
	}

	return parsed.address(), nil
}

// DeriveAddress returns the address of a compressed secp256k1 public key.
func (c *Chain) DeriveAddress(key chain.PublicKey) (chain.Address, error) {
	account, err := accountOf(key)
	if err != nil {
		return "", err
	}

	return account.address(), nil
}

// PaymentURI returns "sim:<address>?asset=<symbol>&amount=<base units>".
func (c *Chain) PaymentURI(to chain.Address, asset chain.Asset, amount chain.Amount) string {
	return "sim:" + string(to) + "?asset=" + url.QueryEscape(asset.Symbol) + "&amount=" + amount.String()
}
