package bitcoin

import (
	"bytes"
	"time"

	"github.com/btcsuite/btcd/chaincfg/v2"
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

// BlockProblem returns what is wrong with the bytes of a block of regtest whose hash is its own.
func BlockProblem(raw []byte) string { return BlockProblemOn(&chaincfg.RegressionNetParams, raw) }

// BlockProblemOn returns what is wrong with the bytes of a block of a network.
func BlockProblemOn(params *chaincfg.Params, raw []byte) string {
	block := new(wire.MsgBlock)
	if err := block.Deserialize(bytes.NewReader(raw)); err != nil {
		return err.Error()
	}

	height := uint64(9)
	if block.BlockHash() == *params.GenesisHash {
		height = 0
	}

	return blockProblem(
		params, height, block.BlockHash().String(), &block.Header, block.Transactions,
	)
}

// Scheduled is the target and the time of a header.
type Scheduled struct {
	Bits uint32
	Unix int64
}

func (s Scheduled) header() *wire.BlockHeader {
	return &wire.BlockHeader{Bits: s.Bits, Timestamp: time.Unix(s.Unix, 0)}
}

// ScheduleProblem returns what is wrong with a header's target after its parent's; first begins the period that
// decides it, where one does.
func ScheduleProblem(params *chaincfg.Params, height uint64, header, parent, first Scheduled) string {
	var start *wire.BlockHeader
	if _, ok := periodStart(params, height); ok {
		start = first.header()
	}

	return targetProblem(params, height, header.header(), parent.header(), start)
}

// PeriodStart returns the height of the block that begins the period which decides a target.
func PeriodStart(params *chaincfg.Params, height uint64) (uint64, bool) {
	return periodStart(params, height)
}

// HeightProblem returns what is wrong with the height in a coinbase.
func HeightProblem(params *chaincfg.Params, height uint64, coinbase *wire.MsgTx) string {
	return heightProblem(params, height, coinbase)
}

// Driver is the driver with every ability.
type Driver = driver

// NewDriver returns it.
func NewDriver(c Config) (*Driver, error) { return newDriver(c) }
