package solana

import (
	"crypto/ed25519"
	"encoding/json"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Assemble puts the signatures before the message. The hash of a transaction is its first
// signature, the fee payer's.
func (d *Driver) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	wrong := func(format string, args ...any) (chain.Signed, error) {
		return chain.Signed{}, fault.New(fault.Invalid, "signature_invalid", format, args...)
	}

	var (
		t       draft
		message solanago.Message
	)

	if err := json.Unmarshal(unsigned.Raw, &t); err != nil {
		return wrong("the unsigned transaction from %s cannot be read", order.From.Address)
	}

	if err := message.UnmarshalBase64(encode(t.Message)); err != nil {
		return wrong("the unsigned transaction from %s holds no message", order.From.Address)
	}

	signers := int(message.Header.NumRequiredSignatures)
	if len(keys) != signers || len(signatures) != signers || len(message.AccountKeys) < signers {
		return wrong(
			"the transaction from %s needs %d signatures and got %d of %d keys",
			order.From.Address, signers, len(signatures), len(keys),
		)
	}

	tx := solanago.Transaction{Message: message}
	for i, signature := range signatures {
		signer := message.AccountKeys[i]
		if keys[i].Curve != chain.Ed25519 || string(keys[i].Bytes) != string(signer[:]) {
			return wrong(
				"signature %d of the transaction from %s has to be made by %s, not by another key",
				i+1, order.From.Address, signer,
			)
		}

		if len(signature) != ed25519.SignatureSize || !ed25519.Verify(signer[:], t.Message, signature) {
			return wrong(
				"signature %d of the transaction from %s is not that of %s",
				i+1, order.From.Address, signer,
			)
		}

		tx.Signatures = append(tx.Signatures, solanago.SignatureFromBytes(signature))
	}

	raw, err := tx.MarshalBinary()
	if err != nil {
		return wrong("the transaction from %s cannot be written", order.From.Address)
	}

	return chain.Signed{
		TxHash:        tx.Signatures[0].String(),
		Raw:           raw,
		MaxFee:        unsigned.MaxFee,
		Outputs:       unsigned.Outputs,
		From:          order.From.Address,
		ValidToHeight: t.ValidToHeight,
	}, nil
}
