package tron

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// TestDecodeVectors decodes the bytes of another library to what they pay.
func TestDecodeVectors(t *testing.T) {
	vectors := readVectors(t)
	d := tokenDriver(t, vectors.Contract)

	for _, vector := range vectors.Transactions {
		raw := unhex(t, vector.Raw)

		decoded, err := d.Decode(raw)
		if vector.Memo != "" {
			if !errors.Is(err, fault.Invalid) {
				t.Errorf("%s: a transaction with a memo decodes: %v", vector.Name, err)
			}

			continue
		}

		if err != nil {
			t.Errorf("%s: %v", vector.Name, err)
			continue
		}

		output := decoded.Outputs[0]
		asset := map[string]string{
			"delegate":   chaindata.DelegateEnergy,
			"undelegate": chaindata.UndelegateEnergy,
		}[vector.Name]

		if len(decoded.Outputs) != 1 || string(output.To) != vector.To ||
			chaindata.MovesCoin(output) != (asset == "") || asset != "" && output.AssetID != asset ||
			output.Amount.String() != vector.Amount {
			t.Errorf("%s: it pays %+v, want %s to %s", vector.Name, decoded.Outputs, vector.Amount, vector.To)
		}

		if decoded.MaxFee != chain.Units(uint64(vector.FeeLimit)) {
			t.Errorf("%s: it may cost %s, want %d", vector.Name, decoded.MaxFee, vector.FeeLimit)
		}

		if len(decoded.Digests) != 1 || !bytes.Equal(decoded.Digests[0], unhex(t, vector.TxID)) {
			t.Errorf("%s: its digests are %x, want %s", vector.Name, decoded.Digests, vector.TxID)
		}
	}
}

// TestDecodeRefuses refuses what transfers something else, or more, than an output says.
func TestDecodeRefuses(t *testing.T) {
	token, owner, payee := address{9}, address{1}, address{2}
	d := tokenDriver(t, string(canonical(token)))

	coin := transaction{
		kind:   transferContract,
		owner:  owner,
		to:     payee,
		amount: 5,
	}
	call := transaction{
		kind:     triggerContract,
		owner:    owner,
		to:       token,
		data:     transferInput(payee, chain.Units(5)),
		feeLimit: 7,
	}

	for name, tx := range map[string]transaction{"coin": coin, "call": call} {
		if _, err := d.Decode(tx.encode()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}

	change := func(tx transaction, f func(*transaction)) []byte {
		f(&tx)
		return tx.encode()
	}
	parameter := func(field int64) []byte {
		value := appendInt(slices.Clone(coin.value()), 9, field)
		return rawOf(transferContract, typeURLs[transferContract], value)
	}

	for name, raw := range map[string][]byte{
		"no transaction":   {1, 2, 3},
		"a memo":           change(coin, func(tx *transaction) { tx.memo = []byte("x") }),
		"a negative limit": change(call, func(tx *transaction) { tx.feeLimit = -1 }),
		"an unknown field": parameter(5),
		"two contracts":    append(coin.encode(), appendBytes(nil, 11, coin.contract())...),
		"another contract": change(call, func(tx *transaction) { tx.to = address{8} }),
		"coin with a call": change(call, func(tx *transaction) { tx.amount = 1 }),
		"another function": change(call, func(tx *transaction) {
			tx.data = append([]byte{9, 5, 0xea, 0xa7}, tx.data[4:]...)
		}),
		"a longer input":     change(call, func(tx *transaction) { tx.data = append(slices.Clone(tx.data), 0) }),
		"a permission":       rawWithPermission(coin),
		"fields in disarray": append(appendInt(nil, 18, 1), coin.encode()...),
	} {
		if decoded, err := d.Decode(
			raw,
		); !errors.Is(err, fault.Invalid) ||
			fault.Code(err) != "unsigned_invalid" {
			t.Errorf("%s: it decodes to %+v, %v", name, decoded, err)
		}
	}
}

// TestDecodeDelegations decodes unlocked delegations of energy and their ends, the former where they are configured,
// and no others. What they do is compared with what was asked for.
func TestDecodeDelegations(t *testing.T) {
	d, unconfigured := tokenDriver(t, string(usdtMainnet)), testDriver(t)
	owner, receiver := address{1}, address{2}
	give := transaction{kind: delegateContract, owner: owner, to: receiver, amount: 5_000_000}
	take := transaction{kind: undelegateContract, owner: owner, to: receiver, amount: 5_000_000}

	value := func(resource, lock int64) []byte {
		value := appendInt(appendBytes(nil, 1, prefixedBytes(owner)), 2, resource)
		value = appendBytes(appendInt(value, 3, give.amount), 4, prefixedBytes(receiver))

		return appendInt(value, 5, lock)
	}

	for name, c := range map[string]struct {
		d   *driver
		raw []byte
		ok  bool
	}{
		"a delegation":            {d, give.encode(), true},
		"its end":                 {d, take.encode(), true},
		"an end, not configured":  {unconfigured, take.encode(), true},
		"one, not configured":     {unconfigured, give.encode(), false},
		"a delegation of a table": {d, rawOf(delegateContract, typeURLs[delegateContract], value(1, 0)), true},
		"of bandwidth":            {d, rawOf(delegateContract, typeURLs[delegateContract], value(0, 0)), false},
		"a locked one":            {d, rawOf(delegateContract, typeURLs[delegateContract], value(1, 1)), false},
	} {
		decoded, err := c.d.Decode(c.raw)
		if (err == nil) != c.ok {
			t.Errorf("%s: %+v, %v", name, decoded, err)
		}
	}

	decoded, err := d.Decode(give.encode())
	if err != nil {
		t.Fatal(err)
	}

	for assetID, ok := range map[string]bool{
		chaindata.DelegateEnergy:   true,
		chaindata.UndelegateEnergy: false,
		d.native.ID:                false,
	} {
		request := chain.SignRequest{
			Payloads: []chain.Payload{{Data: decoded.Digests[0]}},
			Intent: chain.Intent{Outputs: []chain.Output{
				{To: canonical(receiver), AssetID: assetID, Amount: chain.Units(5_000_000)},
			}},
		}
		if err := chaindata.CheckDecoded(
			decoded,
			request,
			[]chain.Address{canonical(owner)},
		); (err == nil) != ok {
			t.Errorf("a delegation is signed as %s: %v", assetID, err)
		}
	}
}

// TestDecodePermission decodes what the configured permission of an account signs, and nothing else.
func TestDecodePermission(t *testing.T) {
	d, owner := testDriver(t), address{1}
	coin := transaction{kind: transferContract, owner: owner, to: address{2}, amount: 5}

	for _, configured := range []int64{0, 2, 3} {
		d.permissions = map[address]int64{owner: configured}

		for _, signing := range []int64{0, 2} {
			coin.permission = signing

			if _, err := d.Decode(coin.encode()); (err == nil) != (signing == configured) {
				t.Errorf("permission %d is configured, %d signs: %v", configured, signing, err)
			}
		}
	}
}

// rawWithPermission returns a transaction that is signed by another permission of its owner.
func rawWithPermission(tx transaction) []byte {
	return appendBytes(nil, 11, appendInt(tx.contract(), 5, 2))
}

// value returns the message in the parameter of a contract.
func (t *transaction) value() []byte {
	value := appendBytes(appendBytes(nil, 1, prefixedBytes(t.owner)), 2, prefixedBytes(t.to))
	return appendInt(value, 3, t.amount)
}

// tokenDriver returns a driver with one enabled token.
func tokenDriver(t testing.TB, contract string) *driver {
	t.Helper()

	return testDriver(t, func(c *Config) {
		c.DelegateEnergy = true

		if contract == string(usdtMainnet) {
			return // of the network's own assets
		}

		c.Tokens = append(c.Tokens, chain.Asset{
			Symbol:   "TOK",
			Kind:     chain.Token,
			Contract: chain.Address(contract),
			Decimals: 6,
		})
	})
}

// FuzzDecode: bytes that decode are the only ones for what they do.
func FuzzDecode(f *testing.F) {
	vectors := readVectors(f)
	d := tokenDriver(f, vectors.Contract)

	for _, vector := range vectors.Transactions {
		f.Add(unhex(f, vector.Raw))
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		decoded, err := d.Decode(raw)
		if err != nil {
			if !errors.Is(err, fault.Invalid) {
				t.Fatalf("%x: %v", raw, err)
			}

			return
		}

		digest := txID(raw)
		if len(decoded.Outputs) != 1 || len(decoded.Digests) != 1 ||
			!bytes.Equal(decoded.Digests[0], digest[:]) {
			t.Errorf("%x decodes to %+v", raw, decoded)
		}
	})
}
