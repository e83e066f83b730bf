package chaindata

import (
	"bytes"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// SpendsOf returns the keys of the spends of decoded bytes, with signer as the sender of nonces; see
// SpendKey.
func SpendsOf(d chain.Decoded, signer chain.Address) []string {
	keys := make([]string, len(d.Spends))

	for i, s := range d.Spends {
		if s.Outpoint.TxHash == "" && s.Value == "" {
			s.Sender = signer
		}

		keys[i] = SpendKey(s)
	}

	return keys
}

// CheckDecoded compares the bytes of a request with its Intent. Every output must be among the Intent's, or
// go back to one of own, the addresses that sign. The digests must be those of the bytes, and the fee at most
// the Intent's.
//
// Errors: fault.Forbidden, code unsigned_mismatch.
func CheckDecoded(d chain.Decoded, request chain.SignRequest, own []chain.Address) error {
	mismatch := func(format string, args ...any) error {
		return fault.New(fault.Forbidden, "unsigned_mismatch", "the unsigned transaction "+format, args...)
	}

	if len(d.Digests) != len(request.Payloads) {
		return mismatch("has %d digests for %d signatures", len(d.Digests), len(request.Payloads))
	}

	for i, p := range request.Payloads {
		if !bytes.Equal(p.Data, d.Digests[i]) {
			return mismatch("has another digest than the one to sign, number %d", i)
		}
	}

	if request.Intent.MaxFee.Less(d.MaxFee) {
		return mismatch("may cost %s, more than %s", d.MaxFee, request.Intent.MaxFee)
	}

	wanted := map[chain.Output]int{}
	for _, o := range request.Intent.Outputs {
		wanted[o]++
	}

	for _, o := range d.Outputs {
		if wanted[o] > 0 {
			wanted[o]--
			continue
		}

		if !containsAddress(own, o.To) {
			return mismatch("pays %s of %s to %s, which nobody asked for", o.Amount, o.AssetID, o.To)
		}
	}

	for o, missing := range wanted {
		if missing > 0 {
			return mismatch("does not pay %s of %s to %s", o.Amount, o.AssetID, o.To)
		}
	}

	return nil
}

func containsAddress(list []chain.Address, a chain.Address) bool {
	for _, b := range list {
		if a == b {
			return true
		}
	}

	return false
}
