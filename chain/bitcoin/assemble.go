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

// previous returns the outputs that a packet's inputs spend.
func previous(p *psbt.Packet) (map[wire.OutPoint]*wire.TxOut, error) {
	out := make(map[wire.OutPoint]*wire.TxOut, len(p.Inputs))
	for i, in := range p.UnsignedTx.TxIn {
		o := p.Inputs[i].WitnessUtxo
		if o == nil || !spendableScript(o.PkScript) || o.Value <= 0 || o.Value > maxSatoshi {
			return nil, malformed(errNoOutput)
		}

		out[in.PreviousOutPoint] = o
	}

	return out, nil
}

// digestsOf returns what has to be signed for each input: by BIP-143 with SIGHASH_ALL for P2WPKH, by BIP-341
// with SIGHASH_DEFAULT for P2TR.
func digestsOf(p *psbt.Packet) ([][]byte, error) {
	spent, err := previous(p)
	if err != nil {
		return nil, err
	}

	fetcher := txscript.NewMultiPrevOutFetcher(spent)
	hashes := txscript.NewTxSigHashes(p.UnsignedTx, fetcher)

	digests := make([][]byte, len(p.UnsignedTx.TxIn))
	for i := range digests {
		if digests[i], err = digest(p.UnsignedTx, i, hashes, fetcher); err != nil {
			return nil, malformed(err)
		}
	}

	return digests, nil
}

func digest(
	tx *wire.MsgTx,
	i int,
	hashes *txscript.TxSigHashes,
	fetcher txscript.PrevOutputFetcher,
) ([]byte, error) {
	o := fetcher.FetchPrevOutput(tx.TxIn[i].PreviousOutPoint)
	if txscript.IsPayToTaproot(o.PkScript) {
		return txscript.CalcTaprootSignatureHash(hashes, txscript.SigHashDefault, tx, i, fetcher)
	}

	return txscript.CalcWitnessSigHash(o.PkScript, hashes, txscript.SigHashAll, tx, i, o.Value)
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
	p, err := psbt.NewFromRawBytes(bytes.NewReader(unsigned.Raw), false)
	if err != nil {
		return chain.Signed{}, malformed(err)
	}

	spent, err := previous(p)
	if err != nil {
		return chain.Signed{}, err
	}

	if err := d.same(p, spent, unsigned); err != nil {
		return chain.Signed{}, err
	}

	tx := p.UnsignedTx.Copy()
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
		o := spent[in.PreviousOutPoint]

		engine, err := txscript.NewEngine(
			o.PkScript, tx, i, txscript.StandardVerifyFlags, nil, hashes, o.Value, fetcher,
		)
		if err == nil {
			err = engine.Execute()
		}

		if err != nil {
			return chain.Signed{}, fault.Wrap(
				err, fault.Invalid, "signature_invalid",
				"signature %d does not unlock the output of %s",
				i, d.addressOf(o.PkScript),
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

// same checks that a packet is what its Unsigned says of it.
func (d *Driver) same(p *psbt.Packet, spent map[wire.OutPoint]*wire.TxOut, u chain.Unsigned) error {
	wrong := malformed(errors.New("inputs, outputs or fee are not those that were built"))

	var (
		fee    int64
		inputs []chain.Outpoint
	)
	for _, in := range p.UnsignedTx.TxIn {
		inputs = append(inputs, outpointOf(in.PreviousOutPoint))
		fee += spent[in.PreviousOutPoint].Value
	}

	for i, o := range p.UnsignedTx.TxOut {
		fee -= o.Value

		if i >= len(u.Outputs) {
			continue // change
		}

		_, script, err := d.parse(string(u.Outputs[i].To))
		if err != nil || !bytes.Equal(script, o.PkScript) || units(o.Value) != u.Outputs[i].Amount {
			return wrong
		}
	}

	if fee <= 0 || units(fee) != u.MaxFee || !slices.Equal(inputs, u.Inputs) ||
		len(p.UnsignedTx.TxOut) < len(u.Outputs) {
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
