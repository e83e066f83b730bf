package sim

// Keys for the simulated network.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Signer is a chain.Signer for the simulated family whose keys follow from a number. It is for tests and
// demonstrations: whoever knows the number has the keys.
type Signer struct {
	seed   uint64
	policy func(chain.SignRequest) error
}

var _ chain.Signer = (*Signer)(nil)

// NewSigner returns the signer of a seed. The policy, when there is one, sees every request first; what it
// returns is what Sign returns.
func NewSigner(seed uint64, policy func(chain.SignRequest) error) *Signer {
	return &Signer{seed: seed, policy: policy}
}

func (s *Signer) key(ref chain.KeyRef) (*secp256k1.PrivateKey, error) {
	if ref.Family != chain.Sim || (ref.Role != chain.RoleDeposit && ref.Role != chain.RoleMaster) {
		return nil, chain.Refuse("unknown_key")
	}

	b := binary.BigEndian.AppendUint64([]byte("sim key"), s.seed)
	h := sha256.Sum256(append(b, ref.String()...))

	return secp256k1.PrivKeyFromBytes(h[:]), nil
}

// PublicKey returns the compressed key of a reference.
func (s *Signer) PublicKey(ctx context.Context, ref chain.KeyRef) (chain.PublicKey, error) {
	if err := ctx.Err(); err != nil {
		return chain.PublicKey{}, err
	}

	key, err := s.key(ref)
	if err != nil {
		return chain.PublicKey{}, err
	}

	return chain.PublicKey{Curve: chain.Secp256k1, Bytes: key.PubKey().SerializeCompressed()}, nil
}

// Sign signs the digests.
func (s *Signer) Sign(ctx context.Context, request chain.SignRequest) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if s.policy != nil {
		if err := s.policy(request); err != nil {
			return nil, err
		}
	}

	signatures := make([][]byte, 0, len(request.Payloads))
	for _, p := range request.Payloads {
		key, err := s.key(p.Key)
		if err != nil {
			return nil, err
		}

		if len(p.Data) != sha256.Size || p.Taproot {
			return nil, fault.New(
				fault.Invalid, "payload_invalid",
				"key %s signs digests of 32 bytes, and not for taproot",
				p.Key,
			)
		}

		compact := ecdsa.SignCompact(key, p.Data, true) // 27 + 4 + recovery id, r, s
		signatures = append(signatures, append(compact[1:65:65], compact[0]-31))
	}

	return signatures, nil
}

// Party returns the address of a key of this signer on a network.
func (s *Signer) Party(role chain.Role, index uint32, network *Chain) chain.Party {
	ref := chain.KeyRef{Family: chain.Sim, Livemode: network.network.Livemode, Role: role, Index: index}

	public, err := s.PublicKey(context.Background(), ref)
	if err != nil {
		panic("sim: " + err.Error())
	}

	address, err := network.DeriveAddress(public)
	if err != nil {
		panic("sim: " + err.Error())
	}

	return chain.Party{Key: ref, Address: address}
}
