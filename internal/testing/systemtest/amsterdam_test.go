package systemtest

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// mover moves money with the EVM driver over go-ethereum's node.
type mover struct {
	chain.Driver
	chain.Sender
	chain.Sweeper
	chain.GasReader

	t       *testing.T
	backend *simulated.Backend
	url     string
	signer  *hdkey.Signer
	rules   string
	token   chain.Asset
	native  chain.Asset
	nonces  map[chain.Address]uint64
}

// today has a chain follow the rules of the main network in November 2026 (Osaka).
func today(_ *node.Config, c *ethconfig.Config) {
	config := *c.Genesis.Config
	config.AmsterdamTime, config.BogotaTime = nil, nil
	c.Genesis.Config = &config
}

// amsterdamFrom has a chain follow Amsterdam's rules from a time on (Unix seconds).
func amsterdamFrom(from uint64) func(*node.Config, *ethconfig.Config) {
	return func(n *node.Config, c *ethconfig.Config) {
		today(n, c)
		c.Genesis.Config.AmsterdamTime = &from
	}
}

func newMover(t *testing.T, rules string, options ...func(*node.Config, *ethconfig.Config)) *mover {
	t.Helper()

	backend, url := gethNode(t, options...)

	signer, err := hdkey.New(testenv.WellKnownDevMnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	m := &mover{
		t:       t,
		backend: backend,
		url:     url,
		signer:  signer,
		rules:   rules,
		nonces:  map[chain.Address]uint64{},
	}
	contract := m.deploy(contracts.TestERC20)

	driver, err := evm.New(evm.Config{
		Network: evm.Local(simulatedChainID, chain.Asset{
			Symbol:   "USDX",
			Kind:     chain.Token,
			Decimals: 6,
			Contract: chain.Address(contract.Hex()),
		}),
		RPC: url,
	})
	m.must(err)

	m.Driver, m.Sender, m.Sweeper = driver, driver.(chain.Sender), driver.(chain.Sweeper)
	m.GasReader = driver.(chain.GasReader)
	network := driver.Network()
	m.native, _ = network.Native()
	m.token, _ = network.Asset("USDX")

	return m
}

func (m *mover) must(err error) {
	m.t.Helper()

	if err != nil {
		m.t.Fatalf("%s: %v", m.rules, err)
	}
}

// post puts a transaction of the development account into the pool.
func (m *mover) post(inner types.TxData) common.Hash {
	m.t.Helper()

	key, err := crypto.HexToECDSA(testenv.WellKnownDevAccounts[0].Key)
	m.must(err)

	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(simulatedChainID)), inner)
	m.must(err)
	m.must(m.backend.Client().SendTransaction(m.t.Context(), tx))
	waitForPool(m.t, m.backend, crypto.PubkeyToAddress(key.PublicKey), tx.Nonce()+1)

	return tx.Hash()
}

// payerNonce is the nonce of the development account's next transaction.
func (m *mover) payerNonce() uint64 {
	m.t.Helper()

	nonce, err := m.backend.Client().PendingNonceAt(m.t.Context(), common.HexToAddress(string(m.payer())))
	m.must(err)

	return nonce
}

// send makes a block with a transaction of the development account.
func (m *mover) send(inner types.TxData) *types.Receipt {
	m.t.Helper()

	hash := m.post(inner)
	m.backend.Commit()

	receipt, err := m.backend.Client().TransactionReceipt(m.t.Context(), hash)
	m.must(err)

	if receipt.Status != 1 {
		m.t.Fatalf("%s: a transaction of the development account failed", m.rules)
	}

	return receipt
}

// callOf is a call of the development account.
func (m *mover) callOf(to *common.Address, value *big.Int, data []byte) types.TxData {
	return &types.DynamicFeeTx{
		ChainID:   big.NewInt(simulatedChainID),
		Nonce:     m.payerNonce(),
		To:        to,
		Value:     value,
		Data:      data,
		Gas:       8_000_000,
		GasTipCap: big.NewInt(params.GWei),
		GasFeeCap: big.NewInt(20 * params.GWei),
	}
}

// call makes a block with a call of the development account.
func (m *mover) call(to *common.Address, value *big.Int, data []byte) *types.Receipt {
	m.t.Helper()
	return m.send(m.callOf(to, value, data))
}

// payer is the development account.
func (m *mover) payer() chain.Address { return chain.Address(testenv.WellKnownDevAccounts[0].Address) }

func (m *mover) deploy(contract contracts.Contract) common.Address {
	m.t.Helper()

	parsed, err := abi.JSON(strings.NewReader(contract.ABI))
	m.must(err)
	input, err := parsed.Pack("", "Token", "USDX", uint8(6))
	m.must(err)

	return m.call(nil, nil, append(common.FromHex(contract.Bytecode), input...)).ContractAddress
}

// fund gives an address coin, or units of the token.
func (m *mover) fund(to chain.Address, asset chain.Asset, amount chain.Amount) {
	m.t.Helper()
	m.send(m.paying(to, asset, amount, "mint"))
}

// paying is a payment of the development account, in tokens by a method of theirs.
func (m *mover) paying(to chain.Address, asset chain.Asset, amount chain.Amount, method string) types.TxData {
	m.t.Helper()

	address := common.HexToAddress(string(to))
	if asset.Kind == chain.Native {
		return m.callOf(&address, amount.Big(), nil)
	}

	parsed, err := abi.JSON(strings.NewReader(contracts.TestERC20.ABI))
	m.must(err)
	data, err := parsed.Pack(method, address, amount.Big())
	m.must(err)

	contract := common.HexToAddress(string(asset.Contract))

	return m.callOf(&contract, nil, data)
}

func (m *mover) party(role chain.Role, index uint32) chain.Party {
	m.t.Helper()

	ref := chain.KeyRef{Family: chain.EVM, Role: role, Index: index}
	key, err := m.signer.PublicKey(m.t.Context(), ref)
	m.must(err)

	address, err := m.Driver.(chain.Deriver).DeriveAddress(key)
	m.must(err)

	return chain.Party{Key: ref, Address: address}
}

// sign builds and signs an order at the sender's next nonce.
func (m *mover) sign(order chain.Order) chain.Signed {
	m.t.Helper()

	order.Nonce = m.nonces[order.From.Address]

	unsigned, err := m.Build(m.t.Context(), order)
	m.must(err)

	signatures, err := m.signer.Sign(m.t.Context(), chain.SignRequest{
		Network:  "local",
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
	})
	m.must(err)

	key, err := m.signer.PublicKey(m.t.Context(), order.From.Key)
	m.must(err)

	signed, err := m.Assemble(order, unsigned, []chain.PublicKey{key}, signatures)
	m.must(err)

	return signed
}

// include sends a transaction and returns its status in the next block.
func (m *mover) include(signed chain.Signed) chain.TxStatus {
	m.t.Helper()

	m.must(m.Broadcast(m.t.Context(), signed))
	m.nonces[signed.From] = signed.Nonce + 1
	waitForPool(m.t, m.backend, common.HexToAddress(string(signed.From)), signed.Nonce+1)
	m.backend.Commit()

	deadline := time.After(20 * time.Second)

	for {
		status, err := m.Status(m.t.Context(), signed)
		m.must(err)

		if status.State == chain.TxIncluded {
			return status
		}

		select {
		case <-deadline:
			m.t.Fatalf("%s: the transaction is %s", m.rules, status.State)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// moved signs, sends and checks an order, and prints its gas.
func (m *mover) moved(kind string, order chain.Order) chain.TxStatus {
	m.t.Helper()

	if order.MaxFee.IsZero() {
		most, err := m.Driver.(chain.FeeEstimator).EstimateFee(m.t.Context(), order)
		m.must(err)

		order.MaxFee = most
	}

	signed := m.sign(order)
	status := m.include(signed)
	receipt, err := m.backend.Client().TransactionReceipt(m.t.Context(), common.HexToHash(signed.TxHash))
	m.must(err)

	tx := new(types.Transaction)
	m.must(tx.UnmarshalBinary(signed.Raw))
	m.t.Logf("%-10s %-40s gas %7d of %7d", m.rules, kind, receipt.GasUsed, tx.Gas())

	if status.Reverted {
		m.t.Errorf("%s: the %s was reverted", m.rules, kind)
	}

	return status
}

func (m *mover) balance(of chain.Address) chain.Amount {
	m.t.Helper()

	wei, err := m.backend.Client().BalanceAt(m.t.Context(), common.HexToAddress(string(of)), nil)
	m.must(err)

	balance, err := chain.AmountFromBig(wei)
	m.must(err)

	return balance
}

// stranger returns an address that nobody used.
func stranger(seed byte) chain.Address {
	return chain.Address(common.BytesToAddress(crypto.Keccak256([]byte{seed, 42})).Hex())
}

// release carries a release out, and returns its steps.
func (m *mover) release(kind string, release chain.SweepRequest) {
	m.t.Helper()

	for range 4 {
		steps, err := m.PlanSweep(m.t.Context(), release)
		m.must(err)

		if len(steps) == 0 {
			return
		}

		m.moved(kind+", "+string(steps[0].Kind), steps[0].Order)
		release.Done = append(slices.Clone(release.Done), steps[0].Kind)
	}
}

// rulesOfGas are the rule sets of go-ethereum's node.
var rulesOfGas = map[string]func(*node.Config, *ethconfig.Config){
	"osaka":     today,
	"amsterdam": amsterdamFrom(0),
}

// Money moves under today's rules of gas and under Amsterdam's (EIP-2780, EIP-8037): every kind of transaction, to
// accounts that exist and to new ones.
func TestMoneyMovesUnderEveryRuleOfGas(t *testing.T) {
	for rules, option := range rulesOfGas {
		t.Run(rules, func(t *testing.T) {
			m := newMover(t, rules, option)
			master := m.party(chain.RoleMaster, 0)
			m.fund(master.Address, m.native, chain.Pow10(18).Mul(10))
			m.fund(master.Address, m.token, chain.Units(1_000_000_000))

			pay := func(kind string, to chain.Address, asset chain.Asset) {
				t.Helper()
				m.moved(kind, chain.Order{
					From:    master,
					Outputs: []chain.Output{{To: to, AssetID: asset.ID, Amount: chain.Units(1_000_000)}},
				})
			}
			pay("payout to a new account", stranger(1), m.native)
			pay("payout to an account", stranger(1), m.native)
			pay("token payout to a new holder", stranger(2), m.token)
			pay("token payout to a holder", stranger(2), m.token)

			deposit := m.party(chain.RoleDeposit, 1)
			m.fund(deposit.Address, m.native, chain.Pow10(17))
			m.release("native release to an old master", chain.SweepRequest{
				Asset: m.native, Deposit: deposit, Master: master, Amount: chain.Pow10(17),
			})

			if left := m.balance(deposit.Address); !left.IsZero() {
				t.Errorf("%s wei are left", left)
			}

			deposit, fresh := m.party(chain.RoleDeposit, 2), m.party(chain.RoleMaster, 7)
			m.fund(deposit.Address, m.native, chain.Pow10(17))
			m.release("native release to a new master", chain.SweepRequest{
				Asset: m.native, Deposit: deposit, Master: fresh, Amount: chain.Pow10(17),
			})

			if left := m.balance(deposit.Address); !left.IsZero() {
				t.Errorf("%s wei are left of a release to a new master", left)
			}

			deposit = m.party(chain.RoleDeposit, 3)
			m.fund(deposit.Address, m.token, chain.Units(5_000_000))
			m.release("token release", chain.SweepRequest{
				Asset: m.token, Deposit: deposit, Master: master, Amount: chain.Units(5_000_000),
			})
			t.Logf("%-10s %-40s %s wei", rules, "token release leaves behind", m.balance(deposit.Address))
		})
	}
}

// A receiver empties its balance between the signature of a token payout and its block: the payout arrives.
func TestTokenPayoutToAnEmptiedReceiver(t *testing.T) {
	for rules, option := range rulesOfGas {
		t.Run(rules, func(t *testing.T) {
			m := newMover(t, rules, option)
			master, receiver := m.party(chain.RoleMaster, 0), m.party(chain.RoleDeposit, 1)

			for _, p := range []chain.Party{master, receiver} {
				m.fund(p.Address, m.native, chain.Pow10(18))
				m.fund(p.Address, m.token, chain.Units(5_000_000))
			}

			order := chain.Order{
				From:   master,
				MaxFee: chain.Pow10(17),
				Outputs: []chain.Output{
					{To: receiver.Address, AssetID: m.token.ID, Amount: chain.Units(1_000_000)},
				},
			}
			payout := m.sign(order)
			m.moved("the receiver empties its account", chain.Order{
				From: receiver,
				Outputs: []chain.Output{
					{To: stranger(3), AssetID: m.token.ID, Amount: chain.Units(5_000_000)},
				},
			})

			if status := m.include(payout); status.Reverted {
				t.Error("the payout ran out of gas")
			}
		})
	}
}

// A master wallet that delegates to code (EIP-7702) receives releases.
func TestReleaseToADelegatedMasterOnGeth(t *testing.T) {
	for rules, option := range rulesOfGas {
		t.Run(rules, func(t *testing.T) {
			m := newMover(t, rules, option)

			key, err := crypto.GenerateKey()
			m.must(err)

			// PUSH1 1 PUSH1 0 SSTORE: what receives coin writes its storage.
			deployment := common.FromHex("0x6005600b5f395f6005f3" + "00" + "6001600055")
			code := m.call(nil, nil, deployment).ContractAddress
			authorization, err := types.SignSetCode(key, types.SetCodeAuthorization{
				ChainID: *uint256.NewInt(simulatedChainID),
				Address: code,
			})
			m.must(err)

			m.send(&types.SetCodeTx{
				ChainID:   uint256.NewInt(simulatedChainID),
				Nonce:     m.payerNonce(),
				To:        crypto.PubkeyToAddress(key.PublicKey),
				Gas:       1_000_000,
				GasTipCap: uint256.NewInt(params.GWei),
				GasFeeCap: uint256.NewInt(20 * params.GWei),
				AuthList:  []types.SetCodeAuthorization{authorization},
			})

			master := chain.Party{Address: chain.Address(crypto.PubkeyToAddress(key.PublicKey).Hex())}
			deposit := m.party(chain.RoleDeposit, 1)
			m.fund(deposit.Address, m.native, chain.Pow10(17))
			m.release("native release to a delegated master", chain.SweepRequest{
				Asset: m.native, Deposit: deposit, Master: master, Amount: chain.Pow10(17),
			})

			least := chain.Pow10(16).Mul(9)
			if arrived := m.balance(master.Address); arrived.Less(least) {
				t.Errorf("%s arrived", arrived)
			}
		})
	}
}

// A release that was signed before the fork runs out of gas after it. That is known, and it is planned again at the new
// cost.
func TestReleaseAcrossTheFork(t *testing.T) {
	from := uint64(time.Now().Add(24 * time.Hour).Unix())
	m := newMover(t, "fork", amsterdamFrom(from))
	master, deposit := m.party(chain.RoleMaster, 0), m.party(chain.RoleDeposit, 1)
	m.fund(master.Address, m.native, chain.Pow10(18))
	m.fund(deposit.Address, m.native, chain.Pow10(17))
	m.fund(deposit.Address, m.token, chain.Units(5_000_000))

	release := chain.SweepRequest{
		Asset:   m.token,
		Deposit: deposit,
		Master:  master,
		Amount:  chain.Units(5_000_000),
		Residue: chain.Pow10(17),
	}
	steps, err := m.PlanSweep(t.Context(), release)
	m.must(err)

	before := m.sign(steps[0].Order)

	m.must(m.backend.AdjustTime(36 * time.Hour))

	status := m.include(before)
	if !status.Reverted {
		t.Fatal("it has gas enough: the fork is not on")
	}

	if ranOut, err := m.RanOutOfGas(t.Context(), before); err != nil || !ranOut {
		t.Errorf("RanOutOfGas = %t, %v", ranOut, err)
	}

	m.release("the release again", release)
}

// Payouts that were signed before the fork to who is new are reverted after it, and are known to have lacked gas only.
func TestPayoutsAcrossTheFork(t *testing.T) {
	m := newMover(t, "fork", amsterdamFrom(uint64(time.Now().Add(24*time.Hour).Unix())))
	master := m.party(chain.RoleMaster, 0)
	m.fund(master.Address, m.native, chain.Pow10(18))
	m.fund(master.Address, m.token, chain.Units(5_000_000))

	var signed []chain.Signed

	for seed, asset := range map[byte]chain.Asset{10: m.native, 11: m.token} {
		order := chain.Order{
			From:    master,
			MaxFee:  chain.Pow10(17),
			Outputs: []chain.Output{{To: stranger(seed), AssetID: asset.ID, Amount: chain.Units(1_000_000)}},
		}
		signed = append(signed, m.sign(order))
		m.nonces[master.Address]++
	}

	m.must(m.backend.AdjustTime(36 * time.Hour))

	for _, tx := range signed {
		status := m.include(tx)

		ranOut, err := m.RanOutOfGas(t.Context(), tx)
		if err != nil || !ranOut || !status.Reverted || len(status.Transfers) > 0 {
			t.Errorf("a payout to %s is %+v; RanOutOfGas = %t, %v", tx.Outputs[0].To, status, ranOut, err)
		}
	}
}
