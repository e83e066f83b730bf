package tron

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// rawOf wraps a contract's message as raw_data, with the type and the type URL given.
func rawOf(kind contractType, typeURL string, value []byte) []byte {
	parameter := appendBytes(appendBytes(nil, 1, []byte(typeURL)), 2, value)
	return appendBytes(nil, 11, appendBytes(appendInt(nil, 1, int64(kind)), 2, parameter))
}

// Anybody may write the message inside a contract oddly and the network takes it, so nothing odd
// stops a scan: it is read as protobuf reads it, or not at all.
func TestOddTransactionsAreReadAsTheNetworkDoes(t *testing.T) {
	owner, to := address{1}, address{2}
	value := appendBytes(appendBytes(nil, 1, prefixedBytes(owner)), 2, prefixedBytes(to))
	plain := appendInt(value, 3, 77)

	url := typeURLs[transferContract]
	for name, c := range map[string]struct {
		raw    []byte
		amount int64
		ok     bool
	}{
		"plain": {rawOf(transferContract, url, plain), 77, true},
		"another host in its URL": {
			rawOf(transferContract, "example.org/protocol.TransferContract", plain),
			77,
			true,
		},
		"no host in its URL":    {rawOf(transferContract, "protocol.TransferContract", plain), 0, false},
		"another message's URL": {rawOf(transferContract, typeURLs[triggerContract], plain), 0, false},
		"an unknown field":      {rawOf(transferContract, url, appendInt(slices.Clone(plain), 9, 5)), 77, true},
		"the amount twice":      {rawOf(transferContract, url, appendInt(slices.Clone(plain), 3, 78)), 78, true},
		"the amount as bytes": {
			rawOf(transferContract, url, appendBytes(slices.Clone(value), 3, []byte{77})),
			0,
			true,
		},
		"a negative amount": {rawOf(transferContract, url, appendInt(slices.Clone(value), 3, -1)), 0, false},
		"a fixed number": {
			rawOf(
				transferContract, url,
				protowire.AppendFixed64(protowire.AppendTag(slices.Clone(plain), 20, protowire.Fixed64Type), 1),
			),
			77,
			true,
		},
		"a short address": {
			rawOf(transferContract, url, appendBytes(slices.Clone(plain), 2, []byte{0x41, 2})),
			0,
			false,
		},
		"another type": {rawOf(2, "type.googleapis.com/protocol.TransferAssetContract", plain), 0, false},
		"no contract":  {nil, 0, false},
		"two contracts": {
			append(rawOf(transferContract, url, plain), rawOf(transferContract, url, plain)...),
			0,
			false,
		},
		"a number that never ends":  {bytes.Repeat([]byte{0xff}, 40), 0, false},
		"a message that breaks off": {rawOf(transferContract, url, plain)[:40], 0, false},
	} {
		tx, ok := decodeTransaction(c.raw)
		if ok != c.ok || (ok && tx.amount != c.amount) {
			t.Errorf("%s: %+v, %v", name, tx, ok)
		}
	}
	// What cannot be read is passed over in a scan, and remembered for balances.
	d := testDriver(t)
	raw := rawOf(2, "type.googleapis.com/protocol.TransferAssetContract", plain)
	id := txID(raw)
	x := txJSON{TxID: hex.EncodeToString(id[:]), RawDataHex: hex.EncodeToString(raw)}

	tx, err := x.parse(d.nodes.Nodes[0])
	if err != nil || tx.tx != nil {
		t.Fatalf("%+v, %v", tx, err)
	}

	transfers, _, err := d.transfersOf(d.nodes.Nodes[0], tx, &infoJSON{ID: tx.hash, Fee: 5})
	if err != nil || len(transfers) != 0 {
		t.Errorf("%+v, %v", transfers, err)
	}

	held := holding{owner, d.native}
	if _, _, err := held.change([]*scannedBlock{{opaque: []blockTx{tx}}}); err == nil {
		t.Error("the balance of an address in a transaction that cannot be read is returned all the same")
	}

	held.owner = address{3}
	if _, _, err := held.change([]*scannedBlock{{opaque: []blockTx{tx}}}); err != nil {
		t.Errorf("somebody else's balance: %v", err)
	}
}

// The index of an internal transfer does not depend on what else a node lists.
func TestInternalIndexesAreTheSameEverywhere(t *testing.T) {
	d := testDriver(t)
	call := func(note string, value int64, rejected bool) string {
		b, err := json.Marshal(map[string]any{
			"caller_address":     nodeHex(address{1}),
			"transferTo_address": nodeHex(address{2}),
			"note":               hex.EncodeToString([]byte(note)),
			"rejected":           rejected,
			"callValueInfo":      []map[string]any{{"callValue": value}},
		})
		if err != nil {
			t.Fatal(err)
		}

		return string(b)
	}
	plain := call("call", 5, false) + "," + call("suicide", 6, false)
	featured := strings.Join([]string{
		call("freezeBalanceV2ForEnergy", 9, false),
		call("call", 0, false),
		call("call", 5, false),
		call("call", 8, true),
		call("voteWitness", 1, false),
		strings.Replace(
			call("call", 7, false),
			`"callValue":7`,
			`"callValue":7,"tokenId":"1000001"`,
			1,
		), // of TRC-10
		call("suicide", 6, false),
	}, ",")

	var first []chain.Transfer

	for _, list := range []string{plain, featured} {
		var i infoJSON
		if err := json.Unmarshal([]byte(`{"internal_transactions":[`+list+`]}`), &i); err != nil {
			t.Fatal(err)
		}

		got, _, err := d.transfersOf(d.nodes.Nodes[0], blockTx{hash: "h"}, &i)
		if err != nil || len(got) != 2 || got[0].Index != chaindata.InternalIndex ||
			got[1].Index != chaindata.InternalIndex+1 ||
			got[0].Amount != chain.Units(5) {
			t.Errorf("%+v, %v", got, err)
		}

		if first == nil {
			first = got
		}

		if !slices.Equal(first, got) {
			t.Errorf("%+v with votes and stakes listed, %+v without", got, first)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Network: Mainnet, Nodes: []Node{{URL: "https://node.invalid"}}}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}

	for name, change := range map[string]func(*Config){
		"no node":           func(c *Config) { c.Nodes = nil },
		"another scheme":    func(c *Config) { c.Nodes = []Node{{URL: "ftp://node.invalid"}} },
		"a bad second URL":  func(c *Config) { c.Nodes = []Node{{URL: "https://node.invalid", SolidityURL: "x"}} },
		"a query":           func(c *Config) { c.Nodes = []Node{{URL: "https://node.invalid?key=1"}} },
		"another family":    func(c *Config) { c.Network.Family = chain.EVM },
		"another CAIP name": func(c *Config) { c.Network.CAIP2 = "tron:mainnet" },
		"a safe rule":       func(c *Config) { c.Network.Rule = chain.RuleSafe },
		"no confirmations":  func(c *Config) { c.Network.Confirmations = 0 },
		"too many blocks":   func(c *Config) { c.MaxBlocks = 101 },
		"a day of validity": func(c *Config) { c.Validity = 24 * 60 * 60e9 },
		"a bad contract":    func(c *Config) { c.Tokens = []chain.Asset{{Symbol: "X", Contract: "0x00"}} },
		"a token twice":     func(c *Config) { c.Tokens = []chain.Asset{{Symbol: "X", Contract: usdtMainnet}} },
	} {
		c := good
		change(&c)

		if _, err := New(c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}

	for _, network := range []chain.Network{Mainnet, Nile, Shasta, Private("00ff")} {
		c := good

		c.Network = network
		if network.Slug == "tron-private" {
			c.Network = Private("000000000000000000000000000000000000000000000000000000001234abcd")
		}

		d, err := New(c)
		if err != nil {
			t.Errorf("%s: %v", network.Slug, err)
			continue
		}

		if _, err := chain.NewRegistry(d); err != nil {
			t.Errorf("%s: %v", network.Slug, err)
		}
	}
}
