package hdkey

// Public derivation (CKDpub): https://github.com/bitcoin/bips/blob/master/bip-0032.mediawiki

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
	"errors"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/seed-8ee7f392/payments/chain"
)

// publicParent derives the public keys of a branch without its private key. It is immutable.
type publicParent struct {
	point      secp256k1.JacobianPoint // affine
	compressed []byte
	chainCode  []byte
}

// newPublicParent returns the public half of a branch's parent key.
func newPublicParent(parent *hdkeychain.ExtendedKey) (*publicParent, error) {
	key, err := parent.ECPubKey()
	if err != nil {
		return nil, err
	}

	p := &publicParent{compressed: key.SerializeCompressed(), chainCode: parent.ChainCode()}
	key.AsJacobian(&p.point)

	return p, nil
}

// errNoKey is returned for an index for which BIP-32 has no key.
var errNoKey = errors.New("the derivation gives no point of the curve")

// child sets result to the point at an index that is not hardened. It is not affine yet.
func (p *publicParent) child(index uint32, result *secp256k1.JacobianPoint) error {
	mac := hmac.New(sha512.New, p.chainCode)
	mac.Write(p.compressed)
	mac.Write(binary.BigEndian.AppendUint32(nil, index))

	var (
		tweak secp256k1.ModNScalar
		sum   [sha512.Size]byte
	)

	if overflows := tweak.SetByteSlice(mac.Sum(sum[:0])[:32]); overflows {
		return errNoKey
	}

	var offset secp256k1.JacobianPoint

	secp256k1.ScalarBaseMultNonConst(&tweak, &offset)
	secp256k1.AddNonConst(&offset, &p.point, result)

	if result.Z.IsZero() {
		return errNoKey
	}

	return nil
}

// secp256k1PublicKeys returns the compressed public keys of references. All their points are made affine by one
// inversion: https://en.wikipedia.org/wiki/Modular_multiplicative_inverse#Multiple_inverses
func (k *keyring) secp256k1PublicKeys(refs []chain.KeyRef) ([][]byte, error) {
	points := make([]secp256k1.JacobianPoint, len(refs))

	for i, ref := range refs {
		keyPath, err := pathOf(ref, k.bitcoin)
		if err != nil {
			return nil, err
		}

		parent := k.publics[branch{ref.Family, ref.Livemode, ref.Role}]
		if err := parent.child(keyPath[len(keyPath)-1], &points[i]); err != nil {
			return nil, unusableIndex(ref, err)
		}
	}

	makeAffine(points)

	keys := make([][]byte, len(points))
	for i := range points {
		keys[i] = secp256k1.NewPublicKey(&points[i].X, &points[i].Y).SerializeCompressed()
	}

	return keys, nil
}

// makeAffine sets Z of each point, none of which is at infinity, to 1.
func makeAffine(points []secp256k1.JacobianPoint) {
	if len(points) == 1 {
		points[0].ToAffine()
		return
	}

	// before holds, for each point, the product of the Zs before it.
	before := make([]secp256k1.FieldVal, len(points))

	var inverse secp256k1.FieldVal

	inverse.SetInt(1)

	for i := range points {
		before[i].Set(&inverse)
		inverse.Mul(&points[i].Z)
	}

	inverse.Inverse()

	for i := len(points) - 1; i >= 0; i-- {
		p := &points[i]

		var z, square secp256k1.FieldVal // of the inverse of Z

		z.Mul2(&inverse, &before[i])
		inverse.Mul(&p.Z)

		square.SquareVal(&z)
		p.X.Mul(&square).Normalize()
		p.Y.Mul(square.Mul(&z)).Normalize()
		p.Z.SetInt(1)
	}
}
