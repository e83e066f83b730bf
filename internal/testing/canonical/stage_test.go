//go:build unix

package canonical_test

// This file holds the chain that every run begins from: tokens of all five kinds, contracts that pay, and
// accounts of payers.

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

const (
	accounts = 120 // one payer each
	holders  = 75  // of them hold a token, fifteen each of the five kinds
	gas      = "0x7a120"
)

// stage is a node with contracts, from which runs begin.
type stage struct {
	node
	payers              []string
	tokens              []chain.Asset
	forwarder, variable string
}

func newStage(t *testing.T) *stage {
	t.Helper()

	anvil := testenv.Anvil(t, testenv.AnvilOptions{Args: []string{
		"--no-mining", "--accounts", fmt.Sprint(accounts), "--block-base-fee-per-gas", "0",
	}})
	s := &stage{node: node{t, anvil.URL}}
	s.call(&s.payers, "eth_accounts")

	kinds := []struct {
		symbol string
		code   contracts.Contract
		args   string
	}{
		{"HONEST", contracts.TestERC20, constructorOfERC20()},
		{"NORETURN", contracts.USDTLike, ""},
		{"GROSS", contracts.GrossFee, fmt.Sprintf("%064x", 0)},
		{"SILENT", contracts.GrossFee, fmt.Sprintf("%064x", 1)},
		{"FALSE", contracts.FalseOnSuccess, ""},
	}

	for _, kind := range kinds {
		s.tokens = append(s.tokens, chain.Asset{
			Symbol:    kind.symbol,
			Kind:      chain.Token,
			Contract:  chain.Address(s.deploy(kind.code.Bytecode + kind.args)),
			Decimals:  6,
			MinAmount: chain.Units(1),
		})
	}

	s.forwarder = s.deploy(contracts.Forwarder.Bytecode)
	s.variable = s.deploy(contracts.StatePayer.Bytecode)
	s.endow()

	return s
}

// constructorOfERC20 returns the encoded arguments (string name, string symbol, uint8 decimals).
func constructorOfERC20() string {
	name := fmt.Sprintf("%064x", 3) + fmt.Sprintf("%-64s", hex.EncodeToString([]byte("USD")))
	name = strings.ReplaceAll(name, " ", "0")

	return fmt.Sprintf("%064x%064x%064x", 0x60, 0xa0, 6) + name + name
}

// made sends a transaction of the first account, and returns its receipt.
func (s *stage) made(tx map[string]any) (receipt struct{ Status, ContractAddress string }) {
	s.t.Helper()

	tx["from"] = s.payers[0]

	hash, err := s.send(tx)
	if err != nil {
		s.t.Fatal(err)
	}

	s.mine(1)
	s.call(&receipt, "eth_getTransactionReceipt", hash)

	if receipt.Status != "0x1" {
		s.t.Fatalf("transaction %s failed", hash)
	}

	return receipt
}

func (s *stage) deploy(code string) (address string) {
	s.t.Helper()
	return s.made(map[string]any{"data": code, "gas": "0x4c4b40"}).ContractAddress
}

// endow gives payers and the paying contract tokens, and the contract coin.
func (s *stage) endow() {
	s.t.Helper()

	many := new(big.Int).Exp(big.NewInt(10), big.NewInt(15), nil)

	for i, token := range s.tokens {
		mint := func(to string) {
			if _, err := s.send(map[string]any{
				"from": s.payers[0],
				"to":   token.Contract,
				"data": data("mint(address,uint256)", to, many),
				"gas":  gas,
			}); err != nil {
				s.t.Fatal(err)
			}
		}

		for payer := 1 + i; payer < holders; payer += len(s.tokens) {
			mint(s.payers[payer])
		}

		mint(s.variable)
		s.mine(1)
	}

	s.made(map[string]any{"to": s.variable, "value": hexOf(9e18)})
	s.mine(1)
}

// serve starts a process for a new merchant over two endpoints that can lie.
func (s *stage) serve(t *testing.T, o orders, settings account.Settings) (*service, [2]*liar) {
	t.Helper()

	liars := [2]*liar{newLiar(t, node{t, s.url}), newLiar(t, node{t, s.url})}
	if o.DB == "" {
		o.DB = filepath.Join(t.TempDir(), "payments.db")
	}

	o.RPCs, o.Tokens = []string{liars[0].URL, liars[1].URL}, s.tokens

	return newService(t, o, merchant(t, o, settings)), liars
}

// merchant makes a database with a merchant, and returns a key.
func merchant(t *testing.T, o orders, settings account.Settings) (key string) {
	t.Helper()

	engine, db, err := o.engine(time.Now, t.Output())
	if err != nil {
		t.Fatal(err)
	}

	settings.Name = "Corner Shop"

	made, err := engine.Accounts.CreateAccount(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}

	_, key, err = engine.Accounts.CreateKey(t.Context(), account.KeyParams{
		AccountID:  made.ID,
		AllowedIPs: []string{"127.0.0.1"},
		Scopes: []account.Scope{
			account.InvoicesRead, account.InvoicesWrite, account.DepositAddressesRead,
			account.DepositAddressesWrite, account.PaymentsRead, account.PayoutsRead, account.PayoutsWrite,
			account.BalancesRead, account.SettlementsRead, account.EventsRead,
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	return key
}
