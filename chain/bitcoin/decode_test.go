package bitcoin_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
)

// decodePacket returns a packet with a P2WPKH input of 70,000 satoshi, a P2TR input of 40,000, and outputs of
// 60,000 and 45,000.
func decodePacket(t testing.TB) *psbt.Packet {
	t.Helper()

	segwit := append([]byte{txscript.OP_0, 20}, bytes.Repeat([]byte{1}, 20)...)

	taproot, err := hex.DecodeString("512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
	if err != nil {
		t.Fatal(err)
	}

	previous := makeTx(1, wire.NewTxOut(5, segwit), wire.NewTxOut(70_000, segwit))
	tx := wire.NewMsgTx(2)
	tx.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: previous.TxHash(), Index: 1}, nil, nil))
	tx.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: makeTx(2).TxHash()}, nil, nil))
	tx.AddTxOut(wire.NewTxOut(60_000, taproot))
	tx.AddTxOut(wire.NewTxOut(45_000, segwit))

	packet, err := psbt.NewFromUnsignedTx(tx)
	if err != nil {
		t.Fatal(err)
	}

	packet.Inputs[0].WitnessUtxo = wire.NewTxOut(70_000, segwit)
	packet.Inputs[0].NonWitnessUtxo = previous
	packet.Inputs[1].WitnessUtxo = wire.NewTxOut(40_000, taproot)

	return packet
}

func serialize(t testing.TB, packet *psbt.Packet) []byte {
	t.Helper()

	var raw bytes.Buffer
	if err := packet.Serialize(&raw); err != nil {
		t.Fatal(err)
	}

	return raw.Bytes()
}

// TestDecodePSBT decodes every output, the fee, and the digests that BIP-143 and BIP-341 define.
func TestDecodePSBT(t *testing.T) {
	d := offline(t, bitcoin.Regtest)
	native, _ := d.Network().Native()
	packet := decodePacket(t)

	decoded, err := d.Decode(serialize(t, packet))
	if err != nil {
		t.Fatal(err)
	}

	if decoded.MaxFee != chain.Units(5_000) {
		t.Errorf("the fee is %s, want 5000", decoded.MaxFee)
	}

	want := []chain.Output{
		{
			To:      "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6",
			AssetID: native.ID,
			Amount:  chain.Units(60_000),
		},
		{
			To:      "bcrt1qqyqszqgpqyqszqgpqyqszqgpqyqszqgpvxat9t",
			AssetID: native.ID,
			Amount:  chain.Units(45_000),
		},
	}
	if len(decoded.Outputs) != 2 || decoded.Outputs[0] != want[0] || decoded.Outputs[1] != want[1] {
		t.Errorf("it pays %+v, want %+v", decoded.Outputs, want)
	}

	spent := txscript.NewMultiPrevOutFetcher(map[wire.OutPoint]*wire.TxOut{
		packet.UnsignedTx.TxIn[0].PreviousOutPoint: packet.Inputs[0].WitnessUtxo,
		packet.UnsignedTx.TxIn[1].PreviousOutPoint: packet.Inputs[1].WitnessUtxo,
	})
	hashes := txscript.NewTxSigHashes(packet.UnsignedTx, spent)
	segwit := packet.Inputs[0].WitnessUtxo

	first, err := txscript.CalcWitnessSigHash(
		segwit.PkScript, hashes, txscript.SigHashAll, packet.UnsignedTx, 0, segwit.Value,
	)
	if err != nil {
		t.Fatal(err)
	}

	second, err := txscript.CalcTaprootSignatureHash(
		hashes,
		txscript.SigHashDefault,
		packet.UnsignedTx,
		1,
		spent,
	)
	if err != nil {
		t.Fatal(err)
	}

	if len(decoded.Digests) != 2 || !bytes.Equal(decoded.Digests[0], first) ||
		!bytes.Equal(decoded.Digests[1], second) {
		t.Errorf("the digests are %x, want %x and %x", decoded.Digests, first, second)
	}
}

// TestDecodeRefusesPSBTs refuses what hides an amount or asks a signer for another signature.
func TestDecodeRefusesPSBTs(t *testing.T) {
	d := offline(t, bitcoin.Regtest)

	for name, change := range map[string]func(p *psbt.Packet){
		"another amount than the previous transaction's": func(p *psbt.Packet) { p.Inputs[0].WitnessUtxo.Value++ },
		"another previous transaction": func(p *psbt.Packet) {
			p.Inputs[0].NonWitnessUtxo.LockTime++
		},
		"an output that the previous transaction lacks": func(p *psbt.Packet) {
			p.UnsignedTx.TxIn[0].PreviousOutPoint.Index = 2
		},
		"an input of which nothing is said": func(p *psbt.Packet) { p.Inputs[1].WitnessUtxo = nil },
		"one output spent twice": func(p *psbt.Packet) {
			p.Inputs[1] = p.Inputs[0]
			p.UnsignedTx.TxIn[1] = p.UnsignedTx.TxIn[0]
		},
		"more than the inputs hold": func(p *psbt.Packet) { p.UnsignedTx.TxOut[0].Value = 65_001 },
		"an input of more than there is": func(p *psbt.Packet) {
			p.Inputs[1].WitnessUtxo.Value = 21_000_000 * 100_000_000
		},
		"a negative output": func(p *psbt.Packet) { p.UnsignedTx.TxOut[0].Value = -1 },
		"an empty output":   func(p *psbt.Packet) { p.UnsignedTx.TxOut[0].Value = 0 },
		"an output of data": func(p *psbt.Packet) {
			p.UnsignedTx.TxOut[0].PkScript = []byte{txscript.OP_RETURN, 1, 7}
		},
		"another kind of signature": func(p *psbt.Packet) { p.Inputs[0].SighashType = txscript.SigHashNone },
		"a script beside the key": func(p *psbt.Packet) {
			p.Inputs[1].TaprootMerkleRoot = bytes.Repeat([]byte{3}, 32)
		},
		"an unknown field": func(p *psbt.Packet) {
			p.Unknowns = append(p.Unknowns, &psbt.Unknown{Key: []byte{0xfc, 1}, Value: []byte{2}})
		},
	} {
		packet := decodePacket(t)
		change(packet)

		decoded, err := d.Decode(serialize(t, packet))
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "unsigned_invalid" {
			t.Errorf("%s: it decodes to %+v, %v", name, decoded, err)
		}
	}
}

// FuzzDecode: what is decoded adds up, and nothing else is said of other bytes than that they are invalid.
func FuzzDecode(f *testing.F) {
	d, err := bitcoin.NewDriver(bitcoin.Config{Network: bitcoin.Regtest, RPC: "http://127.0.0.1:1"})
	if err != nil {
		f.Fatal(err)
	}

	f.Add(serialize(f, decodePacket(f)))

	f.Fuzz(func(t *testing.T, raw []byte) {
		decoded, err := d.Decode(raw)
		if err != nil {
			if !errors.Is(err, fault.Invalid) {
				t.Fatalf("%x: %v", raw, err)
			}

			return
		}

		sum := decoded.MaxFee
		for _, output := range decoded.Outputs {
			sum = sum.Add(output.Amount)
		}

		if len(decoded.Digests) == 0 || chain.Units(21_000_000*100_000_000).Less(sum) {
			t.Errorf("%x decodes to %+v", raw, decoded)
		}
	})
}
