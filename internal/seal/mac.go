package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/seed-8ee7f392/payments/fault"
)

// macSize is the size of an authentication tag in bytes: the key's id and HMAC-SHA256.
const macSize = keyIDSize + sha256.Size

// deriveMACKey returns the key of authentication tags, which is independent of the cipher's key.
func deriveMACKey(raw []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, raw, nil, "payments/seal v1 hmac-sha256", sha256.Size)
}

// MAC returns an authentication tag of a message with the first key. context states what the message is and
// where it is stored, such as "api_keys/<id>": the tag is valid nowhere else.
func (b *Sealer) MAC(message, context []byte) []byte {
	k := b.ring.keys[0]

	return k.mac(message, context)
}

// VerifyMAC checks that a tag was made by MAC, with any of the keys, for the same message and context. It
// compares in constant time.
//
// Errors: fault.Unavailable, code secret_key_unknown, for a tag of a key that is not configured;
// fault.Forbidden, code tag_wrong, for a tag that was not made for this message and context.
func (b *Sealer) VerifyMAC(message, context, tag []byte) error {
	if len(tag) != macSize {
		return errWrongTag()
	}

	genuine, known := false, false

	for _, k := range b.ring.keys {
		known = known || bytes.Equal(tag[:keyIDSize], k.id[:])
		genuine = hmac.Equal(tag, k.mac(message, context)) || genuine
	}

	switch {
	case genuine:
		return nil
	case !known:
		return unknownKey([keyIDSize]byte(tag))
	}

	return errWrongTag()
}

// ShortMAC returns the first size bytes, at most 32, of HMAC-SHA256 of a message with the first key, without
// a key's id. Use it only for values that are not stored and reveal nothing if forged, such as a cursor.
func (b *Sealer) ShortMAC(message, context []byte, size int) []byte {
	return b.ring.keys[0].mac(message, context)[keyIDSize : keyIDSize+size]
}

// VerifyShortMAC reports whether ShortMAC made the tag for the message and the context, with any of the keys. It
// compares in constant time.
func (b *Sealer) VerifyShortMAC(message, context, tag []byte) bool {
	if len(tag) == 0 || len(tag) > sha256.Size {
		return false
	}

	genuine := false

	for _, k := range b.ring.keys {
		genuine = hmac.Equal(tag, k.mac(message, context)[keyIDSize:keyIDSize+len(tag)]) || genuine
	}

	return genuine
}

func errWrongTag() error {
	return fault.New(
		fault.Forbidden, "tag_wrong",
		"a stored row was not written by this service: restore it, or make it anew",
	)
}

// mac returns a tag. The context's length keeps context and message apart.
func (k key) mac(message, context []byte) []byte {
	h := hmac.New(sha256.New, *k.macKey)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(context))))
	h.Write(context)
	h.Write(message)

	return slices.Concat(k.id[:], h.Sum(nil))
}
