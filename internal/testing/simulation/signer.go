package simulation

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// signerState is how the signer answers a process.
type signerState int

const (
	signs         signerState = iota
	refusesToSign             // a policy forbids it
	failsToSign               // it does not answer
	losesSigned               // it signs, and its answer is lost
	signsSlowly               // it answers after many seconds
)

// signerStates is how many states there are.
const signerStates = 5

// slowSigner is how long a slow signer takes for one answer.
const slowSigner = 20 * time.Second

// signerOf is the signer as one process reaches it.
type signerOf struct {
	chain.Signer
	process *process
}

// Sign signs, or does what the signer's state has it do.
func (s signerOf) Sign(ctx context.Context, request chain.SignRequest) ([][]byte, error) {
	switch s.process.signer {
	case refusesToSign:
		return nil, chain.Refuse("policy")
	case failsToSign:
		return nil, signerDown()
	case losesSigned:
		if _, err := s.Signer.Sign(ctx, request); err != nil {
			return nil, err
		}

		return nil, signerDown()
	case signsSlowly:
		s.process.harness.clock.advance(slowSigner)
	case signs:
	}

	return s.Signer.Sign(ctx, request)
}

func signerDown() error {
	return fault.New(fault.Unavailable, "signer_unavailable", "the simulated signer does not answer")
}
