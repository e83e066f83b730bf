package conformance_test

// The mutants of signers: each breaks one sentence of chain.Signer.

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

type signerMutant struct {
	fails  string
	change func(chain.Signer) chain.Signer
}

// faultySigner changes what a signer answers.
type faultySigner struct {
	chain.Signer
	request func(*chain.SignRequest)
	answer  func([][]byte)
	fault   func(error) error
	public  func(chain.PublicKey)
	context func(context.Context) context.Context
}

func (f faultySigner) PublicKey(ctx context.Context, ref chain.KeyRef) (chain.PublicKey, error) {
	key, err := f.Signer.PublicKey(ctx, ref)
	if f.public != nil {
		f.public(key)
	}

	return key, err
}

func (f faultySigner) Sign(ctx context.Context, r chain.SignRequest) ([][]byte, error) {
	if f.request != nil {
		r.Payloads = slices.Clone(r.Payloads)
		f.request(&r)
	}

	if f.context != nil {
		ctx = f.context(ctx)
	}

	signatures, err := f.Signer.Sign(ctx, r)
	if f.answer != nil {
		f.answer(signatures)
	}

	if f.fault != nil {
		err = f.fault(err)
	}

	return signatures, err
}

var signerMutants = map[string]signerMutant{
	"s is in the upper half": {
		"SignaturesVerify",
		func(s chain.Signer) chain.Signer {
			return faultySigner{
				Signer: s,
				answer: func(signatures [][]byte) {
					for _, signature := range signatures {
						var scalar secp256k1.ModNScalar
						scalar.SetByteSlice(signature[32:64])
						scalar.Negate().PutBytesUnchecked(signature[32:64])
						signature[64] ^= 1
					}
				},
			}
		},
	},
	"the recovery id is wrong": {
		"SignaturesVerify",
		func(s chain.Signer) chain.Signer {
			return faultySigner{
				Signer: s,
				answer: func(signatures [][]byte) {
					for _, signature := range signatures {
						signature[64] ^= 1
					}
				},
			}
		},
	},
	"signatures come in another order": {
		"OneSignaturePerPayloadInOrder",
		func(s chain.Signer) chain.Signer {
			return faultySigner{Signer: s, answer: slices.Reverse[[][]byte]}
		},
	},
	"payloads are cut to size": {
		"PayloadOfAnotherSizeIsInvalid",
		func(s chain.Signer) chain.Signer {
			return faultySigner{
				Signer: s,
				request: func(r *chain.SignRequest) {
					for i := range r.Payloads {
						r.Payloads[i].Data = append(slices.Clone(r.Payloads[i].Data), make([]byte, 32)...)[:32]
					}
				},
			}
		},
	},
	"unknown keys are made up": {
		"UnknownKeyIsRefused",
		func(s chain.Signer) chain.Signer {
			return faultySigner{
				Signer: s,
				request: func(r *chain.SignRequest) {
					for i := range r.Payloads {
						r.Payloads[i].Key = r.Payloads[0].Key
					}
				},
			}
		},
	},
	"a refusal is only words": {
		"RefusalIsTyped",
		func(s chain.Signer) chain.Signer {
			return faultySigner{
				Signer: s,
				fault: func(err error) error {
					if err != nil {
						return errors.New(err.Error())
					}

					return nil
				},
			}
		},
	},
	"asked again, it signs what it refused": {
		"RefusalIsTyped",
		func(s chain.Signer) chain.Signer {
			asked := 0

			return faultySigner{
				Signer: s,
				request: func(r *chain.SignRequest) {
					if asked++; asked > 1 {
						r.Intent = chain.Intent{}
					}
				},
			}
		},
	},
	"an ended context is not seen": {
		"EndedContextIsHonoured",
		func(s chain.Signer) chain.Signer {
			return faultySigner{Signer: s, context: context.WithoutCancel}
		},
	},
	"payloads are wiped": {
		"CallerKeepsItsBytes",
		func(s chain.Signer) chain.Signer {
			return faultySigner{
				Signer: s,
				answer: nil,
				request: func(r *chain.SignRequest) {
					signed := slices.Clone(r.Payloads[0].Data)
					clear(r.Payloads[0].Data)
					r.Payloads[0].Data = signed
				},
			}
		},
	},
	"a public key is another each time": {
		"PublicKeyIsStable",
		func(s chain.Signer) chain.Signer {
			var asked atomic.Uint32

			return faultySigner{
				Signer: s,
				public: func(key chain.PublicKey) {
					binary.BigEndian.PutUint32(key.Bytes[1:], asked.Add(1))
				},
			}
		},
	},
	"beside others it fails": {
		"ConcurrentCalls",
		func(s chain.Signer) chain.Signer {
			var asked atomic.Uint32

			return faultySigner{
				Signer: s,
				fault: func(err error) error {
					if asked.Add(1) > 4 {
						return fault.New(fault.Unavailable, "busy", "too many calls")
					}

					return err
				},
			}
		},
	},
}
