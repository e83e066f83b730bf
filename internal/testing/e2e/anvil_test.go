package e2e

import (
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// payer is the first well-known development account: an outsider with money.
type payer struct {
	t       *testing.T
	client  *ethclient.Client
	key     *ecdsa.PrivateKey
	address common.Address
	chainID *big.Int
}

func newPayer(t *testing.T, url string, chainID uint64) *payer {
	t.Helper()

	client, err := ethclient.DialContext(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)

	key, err := crypto.HexToECDSA(testenv.WellKnownDevAccounts[0].Key)
	if err != nil {
		t.Fatal(err)
	}

	return &payer{
		t:       t,
		client:  client,
		key:     key,
		address: crypto.PubkeyToAddress(key.PublicKey),
		chainID: new(big.Int).SetUint64(chainID),
	}
}

// mined waits until a transaction is in a block and fails if it failed.
func (p *payer) mined(tx *types.Transaction) *types.Receipt {
	p.t.Helper()

	var r *types.Receipt

	eventually(p.t, "the transaction is in a block", func() (bool, string) {
		var err error

		r, err = p.client.TransactionReceipt(p.t.Context(), tx.Hash())

		return err == nil, fmt.Sprint(err)
	})

	if r.Status != types.ReceiptStatusSuccessful {
		p.t.Fatalf("transaction %s: %+v", tx.Hash(), r)
	}

	return r
}

// native sends ether.
func (p *payer) native(to chain.Address, v chain.Amount) {
	p.t.Helper()

	receiver := common.HexToAddress(string(to))
	p.mined(p.transact(&receiver, v.Big(), 21_000, nil))
}

// transact signs a transaction and sends it into the pool. Without a receiver it creates a contract. The value is
// in wei.
func (p *payer) transact(to *common.Address, value *big.Int, gas uint64, data []byte) *types.Transaction {
	p.t.Helper()

	nonce, err := p.client.PendingNonceAt(p.t.Context(), p.address)
	if err != nil {
		p.t.Fatal(err)
	}

	head, err := p.client.HeaderByNumber(p.t.Context(), nil)
	if err != nil {
		p.t.Fatal(err)
	}

	tip := big.NewInt(1_000_000_000)

	tx, err := types.SignNewTx(p.key, types.LatestSignerForChainID(p.chainID), &types.DynamicFeeTx{
		ChainID:   p.chainID,
		Nonce:     nonce,
		To:        to,
		Value:     value,
		Gas:       gas,
		GasTipCap: tip,
		GasFeeCap: new(big.Int).Add(tip, new(big.Int).Mul(head.BaseFee, big.NewInt(2))),
		Data:      data,
	})
	if err != nil {
		p.t.Fatal(err)
	}

	if err := p.client.SendTransaction(p.t.Context(), tx); err != nil {
		p.t.Fatal(err)
	}

	return tx
}

// in returns the payer for a subtest.
func (p *payer) in(t *testing.T) *payer {
	c := *p
	c.t = t

	return &c
}

// token is a deployed test token.
type token struct {
	p        *payer
	asset    chain.Asset
	contract deployed
}

func (p *payer) deploy(c contracts.Contract, symbol string, args ...any) *token {
	p.t.Helper()

	contract := p.deployContract(c, args...)
	tok := &token{
		p:        p,
		contract: contract,
		asset: chain.Asset{
			Symbol:    symbol,
			Kind:      chain.Token,
			Contract:  chain.Address(contract.address.Hex()),
			Decimals:  6,
			MinAmount: chain.Units(10_000),
		},
	}
	tok.transact("mint", p.address, new(big.Int).Exp(big.NewInt(10), big.NewInt(15), nil))

	return tok
}

func (t *token) transact(method string, args ...any) {
	t.p.t.Helper()

	t.p.mined(t.contract.transact(new(big.Int), method, args...))
}

func (t *token) send(to chain.Address, v chain.Amount) {
	t.p.t.Helper()
	t.transact("transfer", common.HexToAddress(string(to)), v.Big())
}

func (t *token) balance(of chain.Address) chain.Amount {
	t.p.t.Helper()

	held := t.contract.call("balanceOf", common.HexToAddress(string(of)))

	v, err := chain.AmountFromBig(held.(*big.Int))
	if err != nil {
		t.p.t.Fatal(err)
	}

	return v
}

func (p *payer) balance(of chain.Address) chain.Amount {
	p.t.Helper()

	b, err := p.client.BalanceAt(p.t.Context(), common.HexToAddress(string(of)), nil)
	if err != nil {
		p.t.Fatal(err)
	}

	v, err := chain.AmountFromBig(b)
	if err != nil {
		p.t.Fatal(err)
	}

	return v
}

// feeAddress receives platform fees; nobody has its key.
const feeAddress = "0xFEe0000000000000000000000000000000000FeE"

// TestAnvil plays the main job on a real node and compares what the API says with what the node holds, to the
// base unit.
func TestAnvil(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	node := testenv.Anvil(t, testenv.AnvilOptions{BlockTime: time.Second})
	p := newPayer(t, node.URL, node.ChainID)
	usdc := p.deploy(contracts.TestERC20, "USDC", "Test Dollar", "USDC", uint8(6))
	usdt := p.deploy(contracts.USDTLike, "USDT")
	network := evm.Local(node.ChainID, usdc.asset, usdt.asset)
	network.BlockTime = time.Second

	driver, err := evm.New(evm.Config{Network: network, RPC: node.URL})
	if err != nil {
		t.Fatal(err)
	}

	feeTo, err := driver.ParseAddress(common.HexToAddress(feeAddress).Hex())
	if err != nil {
		t.Fatal(err)
	}

	s := start(t, driver, string(feeTo))
	slug := network.Slug

	master, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), slug, s.account.Index)
	if err != nil {
		t.Fatal(err)
	}

	// Token deposits have their fee and gas paid by the master wallet.
	p.native(master.Address, chain.Pow10(18))

	t.Run("ether, paid in two parts", func(t *testing.T) {
		s, p := s.in(t), p.in(t)
		inv := s.order("100", "ETH", slug)
		due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
		feesBefore, masterBefore := p.balance(feeTo), p.balance(master.Address)
		half := due.Share(chain.Units(1), chain.Units(2))
		p.native(to, half)
		s.await(inv.ID, "underpaid", func(v invoiceView) bool { return v.Status == "underpaid" })
		p.native(to, due.Sub(half))
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" && len(v.Flags) == 0 })

		var gross, net, fee, network chain.Amount
		for _, pay := range s.released(inv.ID, 2) {
			gross, net = gross.Add(
				amount(t, pay.Settlement.Gross),
			), net.Add(
				amount(t, pay.Settlement.NetReleased),
			)
			fee, network = fee.Add(
				amount(t, pay.Settlement.FeePaid),
			), network.Add(
				amount(t, pay.Settlement.NetworkFees),
			)
		}

		if gross != due || gross != net.Add(fee).Add(network) {
			t.Errorf(
				"due %s, gross %s = net %s + fee %s + network fees %s does not balance",
				due, gross, net, fee, network,
			)
		}

		if got := p.balance(master.Address).Sub(masterBefore); got != net {
			t.Errorf("the master wallet got %s, the API says %s", got, net)
		}

		if got := p.balance(feeTo).Sub(feesBefore); got != fee || fee.IsZero() {
			t.Errorf("the fee address got %s, the API says %s", got, fee)
		}

		if left := p.balance(to); !left.IsZero() {
			t.Errorf("%s is left at the deposit address", left)
		}
	})

	for _, tok := range []*token{usdc, usdt} {
		t.Run(tok.asset.Symbol+", overpaid", func(t *testing.T) {
			s, p := s.in(t), p.in(t)
			tok := &token{p: p, asset: tok.asset, contract: tok.contract.in(p)}
			inv := s.order("40", tok.asset.Symbol, slug)
			due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
			paid := due.Add(chain.Units(5_000_000))
			feesBefore, masterBefore, tokensBefore := p.balance(
				feeTo,
			), p.balance(
				master.Address,
			), tok.balance(
				master.Address,
			)
			tok.send(to, paid)
			s.await(
				inv.ID,
				"paid and overpaid",
				func(v invoiceView) bool { return v.Status == "paid" && slices.Contains(v.Flags, "overpaid") },
			)
			pay := s.released(inv.ID, 1)[0]

			set := pay.Settlement
			if amount(t, set.Gross) != paid || amount(t, set.NetReleased) != paid {
				t.Errorf("paid %s, gross %s, net released %s", paid, set.Gross, set.NetReleased)
			}

			if got := tok.balance(master.Address).Sub(tokensBefore); got != paid {
				t.Errorf("the master wallet got %s tokens, %s were paid", got, paid)
			}

			if left := tok.balance(to); !left.IsZero() {
				t.Errorf("%s tokens are left at the deposit address", left)
			}

			fee := amount(t, set.FeePaid)
			if got := p.balance(feeTo).Sub(feesBefore); got != fee || fee.IsZero() {
				t.Errorf("the fee address got %s, the API says %s", got, fee)
			}
			// Whatever left the master wallet is the fee, the network's fees, or gas that is left
			// at the address.
			spent := masterBefore.Sub(p.balance(master.Address))
			if want := fee.Add(amount(t, set.NetworkFees)).Add(p.balance(to)); spent != want {
				b, _ := json.Marshal(set)
				t.Errorf(
					"the master wallet spent %s; fee + network fees + what is left at the address is %s\n%s",
					spent, want, b,
				)
			}
		})
	}
}
