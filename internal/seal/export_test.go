package seal

import (
	"crypto/hkdf"
	"crypto/sha256"
)

// Derived returns the cipher keys of configured keys, for the test that looks for them in what is printed.
func Derived(keys ...[]byte) [][]byte {
	var out [][]byte

	for _, k := range keys {
		d, err := hkdf.Key(sha256.New, k, nil, "payments/seal v1 xchacha20poly1305", KeySize)
		if err != nil {
			panic(err)
		}

		out = append(out, d)
	}

	return out
}
