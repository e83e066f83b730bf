package solana

import (
	"errors"

	solanago "github.com/gagliardetto/solana-go"
)

var errMalformed = errors.New("malformed transaction")

// staticKeys reads the signature and the account keys that stand in a transaction itself, for
// legacy messages and those of version 0. The rest of a message is not needed: what was moved is
// read from the balances. Source: solana.com/docs/core/transactions, "transaction format".
func staticKeys(raw []byte) (signature solanago.Signature, keys []solanago.PublicKey, err error) {
	signatures, raw, ok := shortLength(raw)
	if !ok || signatures == 0 || len(raw) < 64*signatures {
		return signature, nil, errMalformed
	}

	copy(signature[:], raw)

	raw = raw[64*signatures:]
	if len(raw) > 0 && raw[0]&0x80 != 0 {
		if raw[0] != 0x80 {
			return signature, nil, errMalformed // a version that is not known yet
		}

		raw = raw[1:]
	}

	if len(raw) < 3 || int(raw[0]) != signatures {
		return signature, nil, errMalformed
	}

	count, raw, ok := shortLength(raw[3:])
	if !ok || count < signatures || len(raw) < 32*count {
		return signature, nil, errMalformed
	}

	keys = make([]solanago.PublicKey, count)
	for i := range keys {
		copy(keys[i][:], raw[32*i:])
	}

	return signature, keys, nil
}

// shortLength reads a length of one to three bytes with seven bits each.
func shortLength(raw []byte) (n int, rest []byte, ok bool) {
	for i := range min(3, len(raw)) {
		n |= int(raw[i]&0x7f) << (7 * i)
		if raw[i]&0x80 == 0 {
			return n, raw[i+1:], n <= 0xffff
		}
	}

	return 0, nil, false
}
