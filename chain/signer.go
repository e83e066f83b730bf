package chain

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/fault"
)

// Role is the purpose of a key.
type Role string

// The roles. A deposit key belongs to one option or deposit address, a master key to one account.
const (
	RoleDeposit Role = "deposit"
	RoleMaster  Role = "master"
)

// KeyRef identifies a key without revealing it: the key space, the role, and an index within both. The master
// wallet of an account has the account's index.
type KeyRef struct {
	Family   Family `json:"family"`
	Livemode bool   `json:"livemode"`
	Role     Role   `json:"role"`
	Index    uint32 `json:"index"`
}

// String returns "evm/test/deposit/7".
func (k KeyRef) String() string {
	return fmt.Sprintf("%s/%s/%d", Space{k.Family, k.Livemode}, k.Role, k.Index)
}

// Curve names a signature scheme.
type Curve string

// The curves. A secp256k1 public key has 33 bytes (compressed), a signature 65 (r, s, recovery id 0 or 1)
// with s in the lower half; Ed25519 has 32 and 64.
const (
	Secp256k1 Curve = "secp256k1"
	Ed25519   Curve = "ed25519"
)

// CurveOf returns the curve that a family signs with.
func CurveOf(f Family) Curve {
	if f == Solana {
		return Ed25519
	}

	return Secp256k1
}

// PublicKey is a public key.
type PublicKey struct {
	Curve Curve
	Bytes []byte
}

// Payload is one thing to sign: a 32-byte digest for secp256k1, the whole message for Ed25519.
type Payload struct {
	Key  KeyRef
	Data []byte
	// Taproot asks for a BIP-340 signature with the key tweaked as in BIP-86, 64 bytes.
	Taproot bool
}

// Intent describes the purpose of a transaction to a signer's policy. It comes from stored records, not from
// a request.
type Intent struct {
	// Kind is the wallet.Kind: payout, topup, delegate, undelegate, fee, sweep, bump, cancel or recovery.
	Kind string
	// ObjectID is the object that needs the transaction. If the transaction pays several payouts, it is the
	// oldest of them.
	ObjectID  string
	AccountID string
	Outputs   []Output
	// ObjectIDs has, for each of Outputs, the object that it is paid for. A policy that looks payouts up must
	// look at all of these. If a batch is refused, each of its payouts is requested again alone.
	ObjectIDs []string
	MaxFee    Amount
}

// SignRequest holds everything that a policy needs to decide.
type SignRequest struct {
	Network  string // slug
	Unsigned []byte // the driver's form of the whole transaction
	Payloads []Payload
	Intent   Intent
	// Decoded is the content of Unsigned, decoded from its bytes and compared with Intent; nil for a driver
	// that is no Decoder. A remote signer decodes by itself.
	Decoded *Decoded
}

// Signer holds keys, or has access to them: a seed in memory (chain/hdkey), a KMS, an HSM, a remote service.
// A *Refusal is final; any other error leaves the work pending, to be tried again.
type Signer interface {
	// PublicKey returns the public key of a reference: always the same.
	PublicKey(ctx context.Context, key KeyRef) (PublicKey, error)
	// Sign returns one signature per payload, in order. It must return when its context ends, at the latest a
	// minute after the call. A signature that comes later is dropped, and the work is tried again. Until a
	// longer step is done, such as a person's approval, Sign returns an error.
	Sign(ctx context.Context, request SignRequest) ([][]byte, error)
}

// Refusal is the error of a signer that refuses for good. It is fault.Forbidden.
type Refusal struct{ Reason string }

// Refuse returns a Refusal; the reason becomes the failure code signer_refused:<reason>.
func Refuse(reason string) error { return &Refusal{Reason: reason} }

// Error names the reason.
func (r *Refusal) Error() string { return "the signer refused: " + r.Reason }

// Unwrap returns fault.Forbidden.
func (r *Refusal) Unwrap() error { return fault.Forbidden }
