package chain

import (
	"bytes"

	"github.com/seed-8ee7f392/payments/fault"
)

// Decoded is what an unsigned transaction does, read from its bytes alone.
type Decoded struct {
	// Outputs are all that it pays, change included, in the order of the bytes.
	Outputs []Output
	// MaxFee is the most that its bytes let it cost, in base units of the native coin. What a network charges
	// beyond any bound in the bytes is left out, such as the rent of an account that is paid first.
	MaxFee Amount
	// Digests are what its signatures sign, in the order of Unsigned.Payloads.
	Digests [][]byte
	// Spends are what it uses up: each output that it spends, a DurableNonce, or the nonce of the first of
	// Unsigned.Payloads. By is empty, and so is the Sender of the latter, which bytes need not name. Two transactions
	// of one sender that share a Spend exclude each other. Transactions that only expire (Solana, Tron) have none.
	Spends []Spend
}

// SpendsOf returns the keys of what it uses up, as the first address that signs it does; see Spend.Key.
func (d Decoded) SpendsOf(signer Address) []string {
	keys := make([]string, len(d.Spends))

	for i, s := range d.Spends {
		if s.Outpoint.TxHash == "" && s.Value == "" {
			s.Sender = signer
		}

		keys[i] = s.Key()
	}

	return keys
}

// Decoder is a Sender that decodes what it built. It is what a signer's policy, and the engine before every
// signature, compare with the Intent: they need not trust the records or the process that built the bytes.
type Decoder interface {
	// Decode reads Unsigned.Raw and recomputes every digest from it. It does no I/O and uses nothing but the
	// bytes and the driver's configuration. Bytes that it cannot account for wholly, such as a call of an
	// unknown contract, are fault.Invalid with code unsigned_invalid.
	Decode(raw []byte) (Decoded, error)
}

// CheckDecoded compares what a request's bytes do with what it is said to do. Every output must be among those
// of the Intent, or go back to one of own, the addresses that sign; the digests must be those of the bytes, and
// the fee at most the Intent's.
//
// Errors: fault.Forbidden, code unsigned_mismatch.
func CheckDecoded(d Decoded, request SignRequest, own []Address) error {
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

	wanted := map[Output]int{}
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

func containsAddress(list []Address, a Address) bool {
	for _, b := range list {
		if a == b {
			return true
		}
	}

	return false
}
