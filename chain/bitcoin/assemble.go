package bitcoin

import (
	"bytes"
	"errors"
	"slices"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/ecdsa"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// prevOutputs returns the outputs that a packet's inputs spend.
func prevOutputs(packet *psbt.Packet) (map[wire.OutPoint]*wire.TxOut, error) {
	out := make(map[wire.OutPoint]*wire.TxOut, len(packet.Inputs))
	for i, in := range packet.UnsignedTx.TxIn {
		output := packet.Inputs[i].WitnessUtxo
		if output == nil || !spendableScript(output.PkScript) || output.Value <= 0 || output.Value > maxSatoshi {
			return nil, malformed(errNoOutput)
		}

		out[in.PreviousOutPoint] = output
	}

	return out, nil
}

// sighashes returns what has to be signed for each input: by BIP-143 with SIGHASH_ALL for P2WPKH, by BIP-341
// with SIGHASH_DEFAULT for P2TR.
func sighashes(packet *psbt.Packet) ([][]byte, error) {
	spent, err := prevOutputs(packet)
	if err != nil {
		return nil, err
	}

	fetcher := txscript.NewMultiPrevOutFetcher(spent)
	hashes := txscript.NewTxSigHashes(packet.UnsignedTx, fetcher)

	digests := make([][]byte, len(packet.UnsignedTx.TxIn))
	for i := range digests {
		if digests[i], err = sighash(packet.UnsignedTx, i, hashes, fetcher); err != nil {
			return nil, malformed(err)
		}
	}

	return digests, nil
}

func sighash(
	tx *wire.MsgTx,
	i int,
	hashes *txscript.TxSigHashes,
	fetcher txscript.PrevOutputFetcher,
) ([]byte, error) {
	output := fetcher.FetchPrevOutput(tx.TxIn[i].PreviousOutPoint)
	if txscript.IsPayToTaproot(output.PkScript) {
		return txscript.CalcTaprootSignatureHash(hashes, txscript.SigHashDefault, tx, i, fetcher)
	}

	return txscript.CalcWitnessSigHash(output.PkScript, hashes, txscript.SigHashAll, tx, i, output.Value)
}

// Assemble puts the signatures in and computes the hash. Each signature is judged as the network does it, by
// running the script of the output that it spends, and each key must be that of the output's address; else
// fault.Invalid (signature_invalid).
func (d *Driver) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	packet, err := psbt.NewFromRawBytes(bytes.NewReader(unsigned.Raw), false)
	if err != nil {
		return chain.Signed{}, malformed(err)
	}

	spent, err := prevOutputs(packet)
	if err != nil {
		return chain.Signed{}, err
	}

	if err := d.checkPSBT(packet, spent, unsigned); err != nil {
		return chain.Signed{}, err
	}

	tx := packet.UnsignedTx.Copy()
	if len(keys) != len(tx.TxIn) || len(signatures) != len(tx.TxIn) {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the transaction takes %d keys and signatures, not %d and %d",
			len(tx.TxIn), len(keys), len(signatures),
		)
	}

	for i, in := range tx.TxIn {
		script := spent[in.PreviousOutPoint].PkScript

		owner, err := d.derive(keys[i], txscript.IsPayToTaproot(script))
		if err != nil {
			return chain.Signed{}, err
		}

		if owner != d.addressOf(script) {
			return chain.Signed{}, fault.New(
				fault.Invalid, "signature_invalid", "key %d is that of %s, the output is of %s",
				i, owner, d.addressOf(script),
			)
		}

		if in.Witness, err = witness(script, keys[i], signatures[i]); err != nil {
			return chain.Signed{}, fault.Wrap(
				err, fault.Invalid, "signature_invalid", "signature %d has another form",
				i,
			)
		}
	}

	fetcher := txscript.NewMultiPrevOutFetcher(spent)

	hashes := txscript.NewTxSigHashes(tx, fetcher)
	for i, in := range tx.TxIn {
		output := spent[in.PreviousOutPoint]

		engine, err := txscript.NewEngine(
			output.PkScript, tx, i, txscript.StandardVerifyFlags, nil, hashes, output.Value, fetcher,
		)
		if err == nil {
			err = engine.Execute()
		}

		if err != nil {
			return chain.Signed{}, fault.Wrap(
				err, fault.Invalid, "signature_invalid",
				"signature %d does not unlock the output of %s",
				i, d.addressOf(output.PkScript),
			)
		}
	}

	var raw bytes.Buffer
	if err := tx.Serialize(&raw); err != nil {
		return chain.Signed{}, malformed(err)
	}

	return chain.Signed{
		TxHash:  tx.TxHash().String(),
		Raw:     raw.Bytes(),
		MaxFee:  unsigned.MaxFee,
		Inputs:  unsigned.Inputs,
		Outputs: unsigned.Outputs,
		RestsOn: unsigned.RestsOn,
		From:    order.From.Address,
	}, nil
}

// checkPSBT checks that a packet is what its Unsigned says of it.
func (d *Driver) checkPSBT(packet *psbt.Packet, spent map[wire.OutPoint]*wire.TxOut, unsigned chain.Unsigned) error {
	wrong := malformed(errors.New("inputs, outputs or fee are not those that were built"))

	var (
		fee    int64
		inputs []chain.Outpoint
	)
	for _, in := range packet.UnsignedTx.TxIn {
		inputs = append(inputs, outpointOf(in.PreviousOutPoint))
		fee += spent[in.PreviousOutPoint].Value
	}

	for i, output := range packet.UnsignedTx.TxOut {
		fee -= output.Value

		if i >= len(unsigned.Outputs) {
			continue // change
		}

		_, script, err := d.parse(string(unsigned.Outputs[i].To))
		if err != nil || !bytes.Equal(script, output.PkScript) || satoshiAmount(output.Value) != unsigned.Outputs[i].Amount {
			return wrong
		}
	}

	if fee <= 0 || satoshiAmount(fee) != unsigned.MaxFee || !slices.Equal(inputs, unsigned.Inputs) ||
		len(packet.UnsignedTx.TxOut) < len(unsigned.Outputs) {
		return wrong
	}

	return nil
}

var errSignature = errors.New("it is not the signature of the curve and scheme asked for")

// witness is what unlocks an output. The signature is as chain.Signer gives it.
func witness(script []byte, key chain.PublicKey, signature []byte) (wire.TxWitness, error) {
	if txscript.IsPayToTaproot(script) {
		if len(signature) != 64 {
			return nil, errSignature
		}

		return wire.TxWitness{signature}, nil
	}

	if len(signature) != 65 || signature[64] > 1 {
		return nil, errSignature
	}

	var r, s btcec.ModNScalar
	if r.SetByteSlice(signature[:32]) || s.SetByteSlice(signature[32:64]) || r.IsZero() || s.IsZero() ||
		s.IsOverHalfOrder() {
		return nil, errSignature
	}

	der := ecdsa.NewSignature(&r, &s).Serialize()

	return wire.TxWitness{append(der, byte(txscript.SigHashAll)), key.Bytes}, nil
}
