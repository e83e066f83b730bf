package sim

import (
	"bytes"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

func sample() *transaction {
	return &transaction{
		network:       [8]byte{1},
		from:          account{2},
		nonce:         3,
		maxPrice:      5,
		priority:      4,
		validToHeight: 6,
		validTo:       7,
		gasLimit:      200_000,
		transfers: []transfer{
			{kind: kindValue, to: account{8}, amount: chain.Units(9)},
			{kind: kindToken, asset: [12]byte{10}, to: account{11}, amount: chain.Units(12)},
			{kind: kindInternal, to: account{13}, amount: chain.Units(14)},
		},
		signature: [signatureSize]byte{15},
	}
}

func TestTransactionForm(t *testing.T) {
	raw := sample().raw()
	if want := headerSize + 3*transferSize + signatureSize; len(raw) != want {
		t.Fatalf("%d bytes, want %d", len(raw), want)
	}

	if tx, err := decode(raw); err != nil || !bytes.Equal(tx.raw(), raw) {
		t.Fatalf("read back: %+v, %v", tx, err)
	}

	const first, second, third = headerSize, headerSize + transferSize, headerSize + 2*transferSize

	for name, change := range map[string]func(b []byte) []byte{
		"empty":                        func([]byte) []byte { return nil },
		"another version":              func(b []byte) []byte { b[0] = 2; return b },
		"a byte short":                 func(b []byte) []byte { return b[:len(b)-1] },
		"a byte more":                  func(b []byte) []byte { return append(b, 0) },
		"no movements":                 func(b []byte) []byte { b[headerSize-1] = 0; return b },
		"a movement more than counted": func(b []byte) []byte { b[headerSize-1] = 2; return b },
		"too many movements": func(b []byte) []byte {
			b[headerSize-1] = maxTransfers + 1
			return append(b, make([]byte, maxTransfers*transferSize)...)
		},
		"priority above the price":  func(b []byte) []byte { b[52] = 6; return b },
		"gas beyond all blocks":     func(b []byte) []byte { b[69] = 1; return b },
		"a time beyond all years":   func(b []byte) []byte { b[61] = 1; return b },
		"an unknown kind":           func(b []byte) []byte { b[first] = 3; return b },
		"a native coin with an id":  func(b []byte) []byte { b[first+1] = 1; return b },
		"a token without an id":     func(b []byte) []byte { b[second+1] = 0; return b },
		"a value that is not first": func(b []byte) []byte { b[third] = kindValue; return b },
	} {
		if tx, err := decode(change(bytes.Clone(raw))); err == nil {
			t.Errorf("%s is read as %+v", name, tx)
		}
	}
}

// Further destinations of native coin are transfers with indices of their own, and cost gas.
func TestSeveralValues(t *testing.T) {
	c := New(Config{MaxOutputs: 3})

	tx := &transaction{
		network: c.networkID,
		transfers: []transfer{
			{kind: kindValue, to: account{1}, amount: chain.Units(1)},
			{kind: kindValue, to: account{2}, amount: chain.Units(2)},
			{kind: kindValue, to: account{2}, amount: chain.Units(3)},
		},
	}
	if again, err := decode(tx.raw()); err != nil || !bytes.Equal(again.raw(), tx.raw()) {
		t.Fatalf("read back: %+v, %v", again, err)
	}

	if tx.gas() != 3*GasNative {
		t.Errorf("three destinations use %d gas", tx.gas())
	}

	seen := map[uint32]bool{}
	for i, m := range c.claimed(&poolEntry{tx: tx, hash: "h"}, false) {
		if m.Amount != chain.Units(uint64(1+i)) || seen[m.Index] || (m.Index == 0) != (i == 0) ||
			m.Index >= chaindata.InternalIndex {
			t.Errorf("transfer %d is %+v", i, m)
		}

		seen[m.Index] = true
	}

	if len(seen) != 3 {
		t.Errorf("%d transfers", len(seen))
	}

	tx.transfers = append(tx.transfers, transfer{kind: kindValue, to: account{3}})
	if err := c.accept(tx.raw()); fault.Code(err) != "transaction_malformed" {
		t.Errorf("a network of three destinations answers four with %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample().raw())
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{1}, headerSize+transferSize+signatureSize))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tx, err := decode(raw)
		if err != nil {
			if tx != nil {
				t.Fatal("a transaction beside an error")
			}

			return
		}

		if !bytes.Equal(tx.raw(), raw) {
			t.Fatalf("%x is read as %+v, which is written %x", raw, tx, tx.raw())
		}
		// What can be read can be looked at without a panic.
		c := New(Config{})
		c.claimed(&poolEntry{tx: tx, hash: tx.hash()}, true)
		tx.nativeValue()

		if tx.gas() == 0 || tx.verify() == nil {
			t.Fatalf("a made-up transaction of gas %d is signed", tx.gas())
		}
	})
}

func FuzzParseAddress(f *testing.F) {
	c := New(Config{})
	f.Add(string(c.NewAddress()))
	f.Add("sim1")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := c.ParseAddress(s)
		if err != nil {
			if a != "" {
				t.Fatalf("%q is %q beside an error", s, a)
			}

			return
		}

		if again, err := c.ParseAddress(string(a)); err != nil || again != a {
			t.Fatalf("%q is %q, and that is %q, %v", s, a, again, err)
		}
	})
}
