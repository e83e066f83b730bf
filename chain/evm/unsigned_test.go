package evm

import (
	"bytes"
	"errors"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var decodePayee = common.HexToAddress("0x2000000000000000000000000000000000000002")

// decodeCases returns a transfer of 5 wei and a call that transfers 7 base units of the driver's token.
func decodeCases(driver *driver, contract common.Address) (coin, call unsignedTx) {
	coin = unsignedTx{
		chainID: driver.network.ChainID,
		nonce:   3,
		tipCap:  chain.Units(1),
		feeCap:  chain.Units(11),
		gas:     21_000,
		to:      decodePayee,
		value:   chain.Units(5),
	}

	call = coin
	call.to, call.value, call.gas = contract, chain.Amount{}, 60_000
	call.data = transferInput(decodePayee, chain.Units(7))

	return coin, call
}

// TestDecodeUnsigned decodes each kind of transaction to its output, its highest fee, and the digest that
// go-ethereum's signer computes.
func TestDecodeUnsigned(t *testing.T) {
	driver, _, contract := fuzzDriver(t)
	coin, call := decodeCases(driver, contract)
	token := driver.tokens[contract]

	for name, c := range map[string]struct {
		tx     unsignedTx
		output chain.Output
		fee    uint64
	}{
		"coin": {
			coin,
			chain.Output{To: canonical(decodePayee), AssetID: driver.native.ID, Amount: chain.Units(5)},
			231_000,
		},
		"token": {
			call,
			chain.Output{To: canonical(decodePayee), AssetID: token.ID, Amount: chain.Units(7)},
			660_000,
		},
	} {
		decoded, err := driver.Decode(c.tx.encode())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		if !slices.Equal(decoded.Outputs, []chain.Output{c.output}) {
			t.Errorf("%s: it pays %+v, want %+v", name, decoded.Outputs, c.output)
		}

		if decoded.MaxFee != chain.Units(c.fee) {
			t.Errorf("%s: it may cost %s, want %d", name, decoded.MaxFee, c.fee)
		}

		reference := types.NewTx(&types.DynamicFeeTx{
			ChainID:   new(big.Int).SetUint64(c.tx.chainID),
			Nonce:     c.tx.nonce,
			GasTipCap: c.tx.tipCap.Big(),
			GasFeeCap: c.tx.feeCap.Big(),
			Gas:       c.tx.gas,
			To:        &c.tx.to,
			Value:     c.tx.value.Big(),
			Data:      c.tx.data,
		})

		want := types.LatestSignerForChainID(reference.ChainId()).Hash(reference)
		if len(decoded.Digests) != 1 || !bytes.Equal(decoded.Digests[0], want[:]) {
			t.Errorf("%s: the digests are %x, want %s", name, decoded.Digests, want)
		}
	}
}

// TestDecodeRefusesUnsigned refuses what moves something else, or more, than an output says.
func TestDecodeRefusesUnsigned(t *testing.T) {
	driver, _, contract := fuzzDriver(t)
	coin, call := decodeCases(driver, contract)

	changed := func(tx unsignedTx, change func(tx *unsignedTx)) []byte {
		tx.data = slices.Clone(tx.data)
		change(&tx)

		return tx.encode()
	}

	for name, raw := range map[string][]byte{
		"no transaction":          {1, 2, 3},
		"another type":            append([]byte{1}, coin.encode()[1:]...),
		"another chain":           changed(coin, func(tx *unsignedTx) { tx.chainID++ }),
		"coin with a call":        changed(call, func(tx *unsignedTx) { tx.value = chain.Units(1) }),
		"coin to a token":         changed(coin, func(tx *unsignedTx) { tx.to = contract }),
		"data with coin":          changed(coin, func(tx *unsignedTx) { tx.data = []byte{1} }),
		"a token that is not one": changed(call, func(tx *unsignedTx) { tx.to = decodePayee }),
		"another function":        changed(call, func(tx *unsignedTx) { tx.data[0]++ }),
		"a longer input":          changed(call, func(tx *unsignedTx) { tx.data = append(tx.data, 0) }),
		"a shorter input":         changed(call, func(tx *unsignedTx) { tx.data = tx.data[:67] }),
		"a longer receiver":       changed(call, func(tx *unsignedTx) { tx.data[15] = 1 }),
		"a byte more":             append(coin.encode(), 0),
		"a byte less":             coin.encode()[:len(coin.encode())-1],
	} {
		decoded, err := driver.Decode(raw)
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "unsigned_invalid" {
			t.Errorf("%s: it decodes to %+v, %v", name, decoded, err)
		}
	}
}

// FuzzDecode: bytes that decode have one output, and are the digest's only ones.
func FuzzDecode(f *testing.F) {
	driver, _, contract := fuzzDriver(f)
	coin, call := decodeCases(driver, contract)

	f.Add(coin.encode())
	f.Add(call.encode())

	f.Fuzz(func(t *testing.T, raw []byte) {
		decoded, err := driver.Decode(raw)
		if err != nil {
			if !errors.Is(err, fault.Invalid) {
				t.Fatalf("%x: %v", raw, err)
			}

			return
		}

		digest := signingHash(raw)
		if len(decoded.Outputs) != 1 || len(decoded.Digests) != 1 ||
			!bytes.Equal(decoded.Digests[0], digest[:]) {
			t.Errorf("%x decodes to %+v", raw, decoded)
		}

		tx, err := decodeUnsigned(raw)
		if err != nil || !bytes.Equal(tx.encode(), raw) {
			t.Errorf("%x is written otherwise: %v", raw, err)
		}
	})
}
