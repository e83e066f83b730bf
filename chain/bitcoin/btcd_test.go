//go:build unix

package bitcoin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/regtest"
)

// TestDriverOnBtcd runs the suite against a node of another make. It estimates no fees (the driver
// falls back to its configured rate), shows nothing of the pool's packages (a replacement counts
// with what it displaces alone), and names no previous outputs (Transfer.From stays empty).
func TestDriverOnBtcd(t *testing.T) {
	n := testenv.Btcd(t)

	payer, err := regtest.New(t.Context(), &n.BitcoinRPC, 6)
	if err != nil {
		t.Fatal(err)
	}

	driver := func(t *testing.T, change ...func(*bitcoin.Config)) *bitcoin.Driver {
		return newDriver(t, bitcoin.Config{Network: bitcoin.Regtest, RPC: n.URL, Attempts: 1}, change...)
	}
	t.Run("WhatWaitingTransactionsPayIsNotSaid", func(t *testing.T) {
		d := driver(t, func(c *bitcoin.Config) { c.CPFPMaxFee = 50_000 })

		hash, err := payer.Pay(t.Context(), payee, chain.Asset{}, chain.Units(1_000_000))
		if err != nil {
			t.Fatal(err)
		}

		coin := chain.Coin{
			Outpoint: chain.Outpoint{TxHash: hash},
			Owner:    chain.Party{Address: payee},
			Amount:   chain.Units(1_000_000),
		}
		_, _, err = d.Bump(t.Context(), coin, chain.Party{Address: payee}, nil)
		mustCode(t, "Lift", err, fault.Unsupported, "bump_unsupported")
	})
	conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
		return conformance.DriverHarness{
			Driver:  driver(t),
			Network: payer,
			Signer:  freshSigner(t),
			// which it would not know, see above
			Absent:        append(slices.Clone(absent), "control.CheapPayer"),
			Unreachable:   driver(t, func(c *bitcoin.Config) { c.RPC = "http://127.0.0.1:1" }),
			Misconfigured: driver(t, func(c *bitcoin.Config) { c.Network = bitcoin.Signet }),
			BadAddresses:  badAddresses,
			Spellings: map[string]chain.Address{
				"BCRT1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
			},
			Patience: 30 * time.Second,
		}
	})
}
