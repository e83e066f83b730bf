package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// macSize is the size of an authentication tag in bytes: the key's id and HMAC-SHA256.
const macSize = keyIDSize + sha256.Size

// deriveMACKey returns the key of authentication tags, which has nothing to do with that of the cipher.
func deriveMACKey(raw []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, raw, nil, "payments/seal v1 hmac-sha256", sha256.Size)
}

// MAC returns an authentication tag of a message with the first key. context says what the message is and
// where it is stored, such as "api_keys/<id>": a tag is worth nothing elsewhere.
func (b *Sealer) MAC(message, context []byte) []byte {
	k := b.ring.keys[0]

	return k.mac(message, context)
}

// VerifyMAC reports whether a tag was made by MAC, with any of the keys, for the same message and context. It
// compares in constant time.
func (b *Sealer) VerifyMAC(message, context, tag []byte) bool {
	genuine := false

	for _, k := range b.ring.keys {
		genuine = hmac.Equal(tag, k.mac(message, context)) || genuine
	}

	return genuine
}

// mac returns a tag. The context's length keeps context and message apart.
func (k key) mac(message, context []byte) []byte {
	h := hmac.New(sha256.New, *k.macKey)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(context))))
	h.Write(context)
	h.Write(message)

	return slices.Concat(k.id[:], h.Sum(nil))
}
