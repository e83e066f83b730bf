//go:build unix

package bitcoin_test

import (
	"encoding/json"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// What docs/recovery.md promises: bitcoind finds every deposit of many processes and epochs, and every master wallet,
// by the descriptors and ranges of the signer, in one scan, and spends all of it by the private ones.
func TestBitcoindRecoversByDescriptors(t *testing.T) {
	for name, taproot := range map[string]bool{"P2WPKH": false, "P2TR": true} {
		t.Run(name, func(t *testing.T) {
			var opts []hdkey.Option
			if taproot {
				opts = append(opts, hdkey.WithTaproot())
			}

			n := startNode(t, testenv.BitcoindOptions{})
			w := newWallet(t, n, func(c *bitcoin.Config) { c.Taproot = taproot })
			w.signer = freshSigner(t, opts...)

			used := map[chain.Role][]uint32{
				// Three starts of a process, and an epoch: with a gap limit of 20 a wallet finds the first few.
				chain.RoleDeposit: {
					0,
					1,
					2,
					3,
					64,
					65,
					66,
					128,
					129,
					130,
					131,
					1<<20 + 192,
					1<<20 + 193,
					1<<20 + 256,
				},
				chain.RoleMaster: {0, 1, 2, 5},
			}
			addresses, outputs := 0, map[string]string{}

			for role, indexes := range used {
				for _, index := range indexes {
					outputs[string(w.party(role, index).Address)] = "0.01"
					addresses++
				}
			}

			var paid string
			n.must(t, n.Call(t.Context(), &paid, "sendmany", "", outputs))
			w.mine(1)

			var elsewhere string
			n.must(t, n.Call(t.Context(), &elsewhere, "getnewaddress"))

			for _, with := range []struct { // the last one spends what both find
				kind     string
				describe describer
			}{
				{"watching", w.signer.Descriptors},
				{"spending", w.signer.PrivateDescriptors},
			} {
				kind, describe := with.kind, with.describe

				n.must(t, n.Call(t.Context(), nil, "createwallet", kind, kind == "watching", true))

				own := testenv.BitcoinRPC{URL: n.URL + "/wallet/" + kind}
				for role, indexes := range used {
					importKeys(t, own, describe, role, indexes)
				}

				var coins []struct{ Address string }
				n.must(t, own.Call(t.Context(), &coins, "listunspent"))

				if len(coins) != addresses {
					t.Errorf("the %s wallet finds %d of %d", kind, len(coins), addresses)
				}

				if kind == "spending" {
					spendAll(t, n, own, elsewhere)
				}
			}
		})
	}
}

type describer func(space chain.KeyRef, indexes []uint32) ([]hdkey.Descriptor, error)

// importKeys has a wallet look for keys in the whole chain.
func importKeys(t *testing.T, own testenv.BitcoinRPC, describe describer, role chain.Role, indexes []uint32) {
	t.Helper()

	descriptors, err := describe(chain.KeyRef{Family: chain.Bitcoin, Role: role}, indexes)
	if err != nil {
		t.Fatal(err)
	}

	var requests []any

	for _, d := range descriptors {
		request := map[string]any{"desc": d.Text, "timestamp": 0}
		if d.Ranged {
			request["range"] = []uint32{0, d.Last}
		}

		requests = append(requests, request)
	}

	var imported []struct {
		Success bool
		Error   json.RawMessage
	}
	if err := own.Call(t.Context(), &imported, "importdescriptors", requests); err != nil {
		t.Fatal(err)
	}

	for i, result := range imported {
		if !result.Success {
			t.Fatalf("%s, %+v: %s", role, descriptors[i], result.Error)
		}
	}
}

// spendAll has a wallet send all that it holds.
func spendAll(t *testing.T, n *node, own testenv.BitcoinRPC, to string) {
	t.Helper()

	n.must(t, own.Call(t.Context(), nil, "sendall", []string{to}))
	n.must(t, n.Call(t.Context(), nil, "generatetodescriptor", 1, "raw(51)"))

	var rest json.Number
	n.must(t, own.Call(t.Context(), &rest, "getbalance"))

	if !decimal.RequireFromString(rest.String()).IsZero() {
		t.Errorf("%s are left", rest)
	}
}
