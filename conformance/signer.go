package conformance

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/internal/signertest"
)

// SignerHarness is a signer with the keys of the suite's requests.
type SignerHarness struct {
	Signer chain.Signer

	// Network is the slug that requests contain.
	Network string

	// Keys are references for which the signer has keys: at least two, of every family, mode and role that it
	// serves.
	Keys []chain.KeyRef

	// Unknown are references for which it has no key: at least one.
	Unknown []chain.KeyRef

	// TaprootKeys are the Keys that can sign for Taproot; none for a signer without Bitcoin.
	TaprootKeys []chain.KeyRef

	// Refused is a request that the signer's policy refuses; nil for a signer without a policy.
	Refused *chain.SignRequest
}

// TestSigner tests a signer against chain.Signer:
//
//   - One signature per payload, in order, in the form that chain.Curve demands. Taproot signatures
//     verify by the tweaked key (BIP-86).
//   - A payload of another size is fault.Invalid. An unknown key is one of package fault's kinds. A policy's
//     refusal is a *chain.Refusal, each time.
//   - Public keys are always the same, in another process too.
//   - An ended context is honoured, concurrent calls succeed, and callers share no memory with the
//     signer.
//
// The factory is called once per subtest, and twice in PublicKeyIsStable: both signers hold the same
// secrets.
func TestSigner(t *testing.T, factory func(t *testing.T) SignerHarness) {
	signertest.Run(t, func(t *testing.T) signertest.Harness { return signertest.Harness(factory(t)) })
}
