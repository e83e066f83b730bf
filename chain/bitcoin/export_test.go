package bitcoin

import (
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
)

// Digest is what has to be signed for an input.
func Digest(tx *wire.MsgTx, i int, spent []*wire.TxOut) ([]byte, error) {
	outputs := map[wire.OutPoint]*wire.TxOut{}
	for i, in := range tx.TxIn {
		outputs[in.PreviousOutPoint] = spent[i]
	}

	fetcher := txscript.NewMultiPrevOutFetcher(outputs)

	return sighash(tx, i, txscript.NewTxSigHashes(tx, fetcher), fetcher)
}

// Witness is what unlocks an output of ours.
func Witness(script []byte, key chain.PublicKey, signature []byte) (wire.TxWitness, error) {
	return witness(script, key, signature)
}
