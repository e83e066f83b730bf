package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Signer is a chain.Signer for the simulated family whose keys derive from a number. It is for tests
// and demonstrations only: the number is the whole secret.
type Signer struct {
	seed   uint64
	policy func(chain.SignRequest) error
	public sync.Map // chain.KeyRef to its compressed key
}

var _ chain.Signer = (*Signer)(nil)

// NewSigner returns the signer of a seed. A policy other than nil is called with every request; Sign
// returns its error.
func NewSigner(seed uint64, policy func(chain.SignRequest) error) *Signer {
	return &Signer{seed: seed, policy: policy}
}

func (s *Signer) key(ref chain.KeyRef) (*secp256k1.PrivateKey, error) {
	if ref.Family != chain.Sim || (ref.Role != chain.RoleDeposit && ref.Role != chain.RoleMaster) {
		return nil, chain.Refuse("unknown_key")
	}

	preimage := binary.BigEndian.AppendUint64([]byte("sim key"), s.seed)
	secret := sha256.Sum256(append(preimage, ref.String()...))

	return secp256k1.PrivKeyFromBytes(secret[:]), nil
}

// PublicKey returns the compressed secp256k1 key of a reference.
func (s *Signer) PublicKey(ctx context.Context, ref chain.KeyRef) (chain.PublicKey, error) {
	if err := ctx.Err(); err != nil {
		return chain.PublicKey{}, err
	}

	if known, ok := s.public.Load(ref); ok {
		return chain.PublicKey{Curve: chain.Secp256k1, Bytes: slices.Clone(known.([]byte))}, nil
	}

	key, err := s.key(ref)
	if err != nil {
		return chain.PublicKey{}, err
	}

	public := key.PubKey().SerializeCompressed()
	s.public.Store(ref, slices.Clone(public))

	return chain.PublicKey{Curve: chain.Secp256k1, Bytes: public}, nil
}

// Sign returns one signature of 65 bytes (r, s, recovery id) per payload. Payloads are digests of 32
// bytes.
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
	for _, payload := range request.Payloads {
		key, err := s.key(payload.Key)
		if err != nil {
			return nil, err
		}

		if len(payload.Data) != sha256.Size || payload.Taproot {
			return nil, fault.New(
				fault.Invalid, "payload_invalid",
				"key %s signs digests of 32 bytes, and not for taproot",
				payload.Key,
			)
		}

		compact := ecdsa.SignCompact(key, payload.Data, true) // 27 + 4 + recovery id, r, s
		signatures = append(signatures, append(compact[1:65:65], compact[0]-31))
	}

	return signatures, nil
}

// Party returns a key of this signer with its address on a network.
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
