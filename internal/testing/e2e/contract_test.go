package e2e

import (
	"bytes"
	"log/slog"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// Ether that a contract sends to a deposit address is in no transaction's value and in no log. The
// balance shows it, and the transaction that a customer names is attached.
func TestContractPaysADepositAddressOnAnvil(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	node := testenv.Anvil(t, testenv.AnvilOptions{})
	p := newPayer(t, node.URL, node.ChainID)

	forwarder := p.deployContract(contracts.Forwarder)

	now := time.Now()
	clock := func() time.Time { return now }
	network := evm.Local(node.ChainID)

	driver, err := evm.New(evm.Config{Network: network, RPC: node.URL, Traces: true})
	if err != nil {
		t.Fatal(err)
	}

	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Minute, clock)
	if err != nil {
		t.Fatal(err)
	}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{driver},
		Signer:    keys,
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Now:       clock,
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}

	a, err := engine.Accounts.CreateAccount(
		t.Context(), account.Settings{Name: "Exchange", ManualRelease: true},
	)
	if err != nil {
		t.Fatal(err)
	}

	owner := event.Owner{AccountID: a.ID}
	work := func() {
		t.Helper()

		for did, err := engine.Step(t.Context()); did || err != nil; did, err = engine.Step(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	work()

	d, err := engine.Invoices.CreateDeposit(
		t.Context(), invoice.DepositParams{Owner: owner, Network: network.Slug},
	)
	if err != nil {
		t.Fatal(err)
	}

	work() // the address is compared, and again within the hour

	sent := new(big.Int).Exp(big.NewInt(10), big.NewInt(16), nil)
	tx := forwarder.transact(sent, "forward", common.HexToAddress(string(d.Address)))
	p.mined(tx)

	seen := func() []invoice.Payment {
		t.Helper()

		all, _, err := engine.Invoices.ListPayments(
			t.Context(), invoice.PaymentFilter{Owner: owner, DepositAddressID: d.ID, Limit: 10},
		)
		if err != nil {
			t.Fatal(err)
		}

		return all
	}

	work()

	if all := seen(); len(all) != 0 {
		t.Fatalf("a scan shows %+v", all)
	}

	now = now.Add(61 * time.Minute)

	work()

	found := seen()
	if len(found) != 1 || found[0].DetectedBy != invoice.ByBalance || found[0].TxHash != "" ||
		found[0].Amount.Big().Cmp(sent) != 0 {
		t.Fatalf("by its balance the address has the payments %+v", found)
	}

	if result, err := engine.Invoices.HintDeposit(
		t.Context(), owner, d.ID, tx.Hash().Hex(),
	); err != nil ||
		result != invoice.HintFound {
		t.Fatalf("the customer's hint: %s, %v", result, err)
	}

	if all := seen(); len(all) != 1 || all[0].ID != found[0].ID || all[0].TxHash != tx.Hash().Hex() ||
		all[0].TxIndex != 1<<20 {
		t.Fatalf("with the hint the payments are %+v", all)
	}

	p.native(chain.Address(p.address.Hex()), chain.Units(1)) // a block on top
	p.native(chain.Address(p.address.Hex()), chain.Units(1))
	work()

	now = now.Add(61 * time.Minute)

	work()

	if all := seen(); len(all) != 1 || all[0].Status != invoice.Confirmed {
		t.Errorf("in the end the payments are %+v", all)
	}
}
