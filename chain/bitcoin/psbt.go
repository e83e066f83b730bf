package bitcoin

import (
	"bytes"
	"errors"
	"slices"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/ecdsa"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// buildPSBT returns the unsigned transaction of a selection as a PSBT (BIP-174), with one payload per input.
// If a payment is too small to bear the fee, the error is fault.State (insufficient_funds).
func (d *driver) buildPSBT(
	order chain.Order,
	target coinTarget,
	selected selection,
	height uint32,
	hints psbtHints,
) (chain.Unsigned, error) {
	unsigned := chain.Unsigned{MaxFee: satoshiAmount(selected.fee), Outputs: slices.Clone(order.Outputs)}

	outputs, err := txOuts(order, target, selected, unsigned.Outputs)
	if err != nil {
		return chain.Unsigned{}, err
	}

	tx := wire.NewMsgTx(2)
	tx.LockTime, tx.TxOut = height, outputs

	for _, coin := range selected.coins {
		hash, err := chainhash.NewHashFromStr(coin.Outpoint.TxHash)
		if err != nil {
			return chain.Unsigned{}, malformed(err)
		}

		tx.AddTxIn(&wire.TxIn{
			PreviousOutPoint: wire.OutPoint{Hash: *hash, Index: coin.Outpoint.Vout},
			Sequence:         replaceable,
		})
		unsigned.Inputs = append(unsigned.Inputs, coin.Outpoint)
	}

	packet, err := psbt.NewFromUnsignedTx(tx)
	if err != nil {
		return chain.Unsigned{}, malformed(err)
	}

	for i, coin := range selected.coins {
		// Without a sighash type a signer must use ALL for P2WPKH and DEFAULT for P2TR.
		packet.Inputs[i].WitnessUtxo = wire.NewTxOut(coin.value, coin.script)
	}

	hints.addTo(packet, order, target, selected.coins)

	digests, err := sighashes(packet)
	if err != nil {
		return chain.Unsigned{}, err
	}

	for i, coin := range selected.coins {
		payload := chain.Payload{Key: coin.Owner.Key, Data: digests[i], Taproot: coin.taproot}
		unsigned.Payloads = append(unsigned.Payloads, payload)
	}

	var raw bytes.Buffer
	if err := packet.Serialize(&raw); err != nil {
		return chain.Unsigned{}, malformed(err)
	}

	unsigned.Raw = raw.Bytes()

	return unsigned, nil
}

// txOuts returns the outputs of a transaction, change last. Where the last payment bears the fee, its
// amount in ordered is reduced as well.
func txOuts(
	order chain.Order,
	target coinTarget,
	selected selection,
	ordered []chain.Output,
) ([]*wire.TxOut, error) {
	outputs := make([]*wire.TxOut, 0, len(target.outputs)+1)
	for _, output := range target.outputs {
		outputs = append(outputs, wire.NewTxOut(output.Value, output.PkScript))
	}

	if order.SubtractFee {
		last := outputs[len(outputs)-1]
		if last.Value -= selected.fee; last.Value < dustLimit(last.PkScript) {
			return nil, fault.New(
				fault.State, "insufficient_funds",
				"%s satoshi less the network fee of %d is nothing that can be sent",
				ordered[len(outputs)-1].Amount, selected.fee,
			)
		}

		ordered[len(outputs)-1].Amount = satoshiAmount(last.Value)
	}

	if selected.change > 0 {
		outputs = append(outputs, wire.NewTxOut(selected.change, target.changeScript))
	}

	return outputs, nil
}

// Assemble returns the signed transaction with its hash. Each signature is verified as by the network, with
// the script of the output that it spends. Each key must be that of the output's address. Otherwise the error
// is fault.Invalid (signature_invalid).
func (d *driver) Assemble(
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
	if err := d.addWitnesses(tx, spent, keys, signatures); err != nil {
		return chain.Signed{}, err
	}

	if err := d.verifyScripts(tx, spent); err != nil {
		return chain.Signed{}, err
	}

	var raw bytes.Buffer
	if err := tx.Serialize(&raw); err != nil {
		return chain.Signed{}, malformed(err)
	}

	return chain.Signed{
		TxHash:             tx.TxHash().String(),
		Raw:                raw.Bytes(),
		MaxFee:             unsigned.MaxFee,
		Inputs:             unsigned.Inputs,
		Outputs:            unsigned.Outputs,
		UnconfirmedParents: unsigned.UnconfirmedParents,
		From:               order.From.Address,
	}, nil
}

// prevOutputs returns the outputs that a packet's inputs spend. This package must be able to sign for all
// their scripts.
func prevOutputs(packet *psbt.Packet) (map[wire.OutPoint]*wire.TxOut, error) {
	spent := make(map[wire.OutPoint]*wire.TxOut, len(packet.Inputs))
	for i, in := range packet.UnsignedTx.TxIn {
		output := packet.Inputs[i].WitnessUtxo
		if output == nil || !spendableScript(output.PkScript) || output.Value <= 0 ||
			output.Value > maxSatoshi {
			return nil, malformed(errNoOutput)
		}

		spent[in.PreviousOutPoint] = output
	}

	return spent, nil
}

// checkPSBT checks that inputs, outputs and fee of a packet are those of its Unsigned.
func (d *driver) checkPSBT(
	packet *psbt.Packet,
	spent map[wire.OutPoint]*wire.TxOut,
	unsigned chain.Unsigned,
) error {
	mismatch := malformed(errors.New("inputs, outputs or fee are not those that were built"))

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

		want := unsigned.Outputs[i]

		_, script, err := d.parse(string(want.To))
		if err != nil || !bytes.Equal(script, output.PkScript) || satoshiAmount(output.Value) != want.Amount {
			return mismatch
		}
	}

	if fee <= 0 || satoshiAmount(fee) != unsigned.MaxFee || !slices.Equal(inputs, unsigned.Inputs) ||
		len(packet.UnsignedTx.TxOut) < len(unsigned.Outputs) {
		return mismatch
	}

	return nil
}

// addWitnesses sets the witness of each input from its key and signature.
func (d *driver) addWitnesses(
	tx *wire.MsgTx,
	spent map[wire.OutPoint]*wire.TxOut,
	keys []chain.PublicKey,
	signatures [][]byte,
) error {
	if len(keys) != len(tx.TxIn) || len(signatures) != len(tx.TxIn) {
		return fault.New(
			fault.Invalid, "signature_invalid",
			"the transaction takes %d keys and signatures, not %d and %d",
			len(tx.TxIn), len(keys), len(signatures),
		)
	}

	for i, in := range tx.TxIn {
		script := spent[in.PreviousOutPoint].PkScript

		owner, err := d.derive(keys[i], txscript.IsPayToTaproot(script))
		if err != nil {
			return err
		}

		if owner != d.addressOf(script) {
			return fault.New(
				fault.Invalid, "signature_invalid", "key %d is that of %s, the output is of %s",
				i, owner, d.addressOf(script),
			)
		}

		if in.Witness, err = witness(script, keys[i], signatures[i]); err != nil {
			return fault.Wrap(
				err, fault.Invalid, "signature_invalid", "signature %d has another form",
				i,
			)
		}
	}

	return nil
}

// verifyScripts runs the script of every output that the transaction spends.
func (d *driver) verifyScripts(tx *wire.MsgTx, spent map[wire.OutPoint]*wire.TxOut) error {
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
			return fault.Wrap(
				err, fault.Invalid, "signature_invalid",
				"signature %d does not unlock the output of %s",
				i, d.addressOf(output.PkScript),
			)
		}
	}

	return nil
}

var errSignature = errors.New("it is not the signature of the curve and scheme asked for")

// witness returns the witness that unlocks an output. The signature has the form of chain.Signer: 64 bytes of
// BIP-340 for P2TR; r, s and recovery id for P2WPKH.
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

	overflow := r.SetByteSlice(signature[:32]) || s.SetByteSlice(signature[32:64])
	if overflow || r.IsZero() || s.IsZero() || s.IsOverHalfOrder() {
		return nil, errSignature
	}

	der := ecdsa.NewSignature(&r, &s).Serialize()

	return wire.TxWitness{append(der, byte(txscript.SigHashAll)), key.Bytes}, nil
}

// sighashes returns the digest to sign for each input: by BIP-143 with SIGHASH_ALL for P2WPKH, by BIP-341
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

// sighash returns the digest to sign for input i.
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

var errNoOutput = errors.New("an input does not say which output it spends")

func malformed(err error) error {
	return fault.Wrap(
		err, fault.Invalid, "transaction_malformed",
		"the bytes are no transaction that this driver built",
	)
}
