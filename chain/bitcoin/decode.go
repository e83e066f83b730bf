package bitcoin

import (
	"bytes"
	"errors"

	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var _ chain.Decoder = (*driver)(nil)

// Decode implements chain.Decoder. MaxFee is the exact fee: the sum of the inputs less the outputs. Each
// digest commits at least to the amount of its own input. A previous transaction in the packet must have the
// output that its input spends. A packet with fields that Build does not write is refused.
func (d *driver) Decode(raw []byte) (chain.Decoded, error) {
	decoded, err := d.decodePSBT(raw)
	if err != nil {
		return chain.Decoded{}, fault.Wrap(
			err, fault.Invalid, "unsigned_invalid", "the transaction cannot be decoded",
		)
	}

	return decoded, nil
}

func (d *driver) decodePSBT(raw []byte) (chain.Decoded, error) {
	packet, err := parseBuiltPSBT(raw)
	if err != nil {
		return chain.Decoded{}, err
	}

	held, err := sumInputs(packet)
	if err != nil {
		return chain.Decoded{}, err
	}

	outputs, err := d.decodeOutputs(packet.UnsignedTx.TxOut)
	if err != nil {
		return chain.Decoded{}, err
	}

	fee := satoshiAmount(held)

	for _, output := range outputs {
		if fee.Less(output.Amount) {
			return chain.Decoded{}, errors.New("it pays more than its inputs hold")
		}

		fee = fee.Sub(output.Amount)
	}

	digests, err := sighashes(packet)
	if err != nil {
		return chain.Decoded{}, err
	}

	spends := make([]chain.Spend, len(packet.UnsignedTx.TxIn))
	for i, in := range packet.UnsignedTx.TxIn {
		spends[i] = chain.Spend{Outpoint: outpointOf(in.PreviousOutPoint)}
	}

	return chain.Decoded{
		Outputs: outputs,
		MaxFee:  fee,
		Digests: digests,
		Spends:  spends,
	}, nil
}

// parseBuiltPSBT parses a packet whose fields are all among those that Build writes.
func parseBuiltPSBT(raw []byte) (*psbt.Packet, error) {
	packet, err := psbt.NewFromRawBytes(bytes.NewReader(raw), false)
	if err != nil {
		return nil, err
	}

	known := psbt.Packet{UnsignedTx: packet.UnsignedTx}
	for _, in := range packet.Inputs {
		known.Inputs = append(known.Inputs, psbt.PInput{
			NonWitnessUtxo:         in.NonWitnessUtxo,
			WitnessUtxo:            in.WitnessUtxo,
			Bip32Derivation:        in.Bip32Derivation,
			TaprootBip32Derivation: in.TaprootBip32Derivation,
			TaprootInternalKey:     in.TaprootInternalKey,
		})
	}

	for _, out := range packet.Outputs {
		known.Outputs = append(known.Outputs, psbt.POutput{
			Bip32Derivation:        out.Bip32Derivation,
			TaprootBip32Derivation: out.TaprootBip32Derivation,
			TaprootInternalKey:     out.TaprootInternalKey,
		})
	}

	var again bytes.Buffer
	if err := known.Serialize(&again); err != nil {
		return nil, err
	}

	if !bytes.Equal(again.Bytes(), raw) {
		return nil, errors.New("it has fields that this driver does not write")
	}

	return &known, nil
}

// sumInputs returns the sum of a packet's inputs, in satoshi.
func sumInputs(packet *psbt.Packet) (int64, error) {
	spent, err := prevOutputs(packet)
	if err != nil {
		return 0, err
	}

	if len(spent) != len(packet.UnsignedTx.TxIn) {
		return 0, errors.New("it spends an output twice")
	}

	var held int64

	for i, in := range packet.UnsignedTx.TxIn {
		output := spent[in.PreviousOutPoint]
		if held += output.Value; held > maxSatoshi {
			return 0, errors.New("its inputs hold more than there is")
		}

		if previous := packet.Inputs[i].NonWitnessUtxo; previous != nil && !hasOutput(previous, in, output) {
			return 0, errors.New("an input spends another output than it says")
		}
	}

	return held, nil
}

// hasOutput reports whether a transaction has the output that an input spends.
func hasOutput(previous *wire.MsgTx, in *wire.TxIn, output *wire.TxOut) bool {
	outpoint := in.PreviousOutPoint
	if previous.TxHash() != outpoint.Hash || uint64(outpoint.Index) >= uint64(len(previous.TxOut)) {
		return false
	}

	actual := previous.TxOut[outpoint.Index]

	return actual.Value == output.Value && bytes.Equal(actual.PkScript, output.PkScript)
}

// decodeOutputs returns the payments of outputs. Each must have an amount, and a script with an address.
func (d *driver) decodeOutputs(list []*wire.TxOut) ([]chain.Output, error) {
	var outputs []chain.Output

	for _, output := range list {
		to := d.addressOf(output.PkScript)
		if to == "" {
			return nil, errors.New("an output has no address")
		}

		if output.Value <= 0 || output.Value > maxSatoshi {
			return nil, errors.New("an output has no amount")
		}

		outputs = append(outputs, chain.Output{
			To:      to,
			AssetID: d.native.ID,
			Amount:  satoshiAmount(output.Value),
		})
	}

	return outputs, nil
}
