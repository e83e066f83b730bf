//go:build unix

package solana_test

// The controls of a test node for conformance.TestDriver and the other tests: payments and tokens of
// third parties. They use the instructions of solana-go, as a check of the driver's own.

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"

	solanago "github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

const sol = 1_000_000_000

// nodes are started once, for all tests.
var nodes testenv.SolanaNodes

func TestMain(m *testing.M) {
	code := m.Run()

	if err := nodes.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}

	os.Exit(code)
}

// node is a test node with one token.
type node struct {
	*testenv.SolanaNode
	authority solanago.PrivateKey // pays for everything, mints and freezes
	mint      solanago.PublicKey
	program   solanago.PublicKey
	asset     chain.Asset
}

// startNode starts a node and makes a mint with the given extensions, which need Token-2022.
func startNode(t *testing.T, program solanago.PublicKey, extensions ...mintExtension) *node {
	t.Helper()

	return startFinalNode(t, 4, program, extensions...)
}

// mainFinality is how many blocks on top of a block make it final on the main network.
const mainFinality = 31

// startFinalNode starts a node as startNode does, on which so many blocks on top of a block make it final.
func startFinalNode(
	t *testing.T,
	finality int,
	program solanago.PublicKey,
	extensions ...mintExtension,
) *node {
	t.Helper()

	n := &node{SolanaNode: nodes.Start(t, finality), program: program}
	n.authority = newKey(t)
	must(t, n.Airdrop(n.authority.PublicKey().String(), 1_000_000*sol))
	must(t, n.SolanaNode.Mine(6)) // past the first final blocks
	n.mint = n.newMint(t, program, 6, extensions...)
	n.asset = chain.Asset{
		Symbol:    "TOK",
		Kind:      chain.Token,
		Contract:  chain.Address(n.mint.String()),
		Decimals:  6,
		MinAmount: chain.Units(1000),
	}

	return n
}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T) solanago.PrivateKey {
	t.Helper()

	key, err := solanago.NewRandomPrivateKey()
	must(t, err)

	return key
}

func (n *node) config() solana.Config {
	c := solana.Config{Network: solana.Local(n.GenesisHash, n.asset), RPC: n.URL, Attempts: 1}
	if n.program == solanago.Token2022ProgramID {
		c.Token2022 = []chain.Address{n.asset.Contract}
	}

	return c
}

func (n *node) driver(t *testing.T, change ...func(*solana.Config)) *solana.BlockDriver {
	t.Helper()

	c := n.config()
	for _, f := range change {
		f(&c)
	}

	d, err := solana.NewBlockDriver(c)
	must(t, err)

	return d
}

// inBubble has a driver run in a bubble of testing/synctest, in which waiting takes no time. A connection that is kept
// would hold the bubble's clock.
func inBubble(c *solana.Config) {
	c.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// mintExtension is an instruction that precedes InitializeMint2, and its size in bytes.
type mintExtension struct {
	size int
	data []byte
	with []solanago.PublicKey // further accounts
}

// withFee returns the extension for a transfer fee of bps, at most the maximum in base units.
func withFee(bps uint16, maximum uint64) mintExtension {
	data := []byte{26, 0, 0, 0} // InitializeTransferFeeConfig, without authorities
	data = binary.LittleEndian.AppendUint16(data, bps)

	return mintExtension{size: 4 + 108, data: binary.LittleEndian.AppendUint64(data, maximum)}
}

func (n *node) newMint(
	t *testing.T,
	program solanago.PublicKey,
	decimals uint8,
	extensions ...mintExtension,
) solanago.PublicKey {
	t.Helper()
	key := newKey(t)

	size := 82
	if len(extensions) > 0 {
		size = 166
	}

	for _, x := range extensions {
		size += x.size
	}

	var rent uint64
	must(t, n.Call(&rent, "getMinimumBalanceForRentExemption", size))

	authority := n.authority.PublicKey()
	create := system.NewCreateAccountInstruction(rent, uint64(size), program, authority, key.PublicKey())

	list := []solanago.Instruction{create.Build()}

	for _, x := range extensions {
		metas := solanago.AccountMetaSlice{solanago.Meta(key.PublicKey()).WRITE()}
		for _, k := range x.with {
			metas = append(metas, solanago.Meta(k))
		}

		list = append(list, solanago.NewInstruction(program, metas, x.data))
	}

	list = append(list, initializeMint(program, key.PublicKey(), authority, decimals))
	_, err := n.send(list, n.authority, key)
	must(t, err)
	must(t, n.SolanaNode.Mine(1))

	return key.PublicKey()
}

// send signs and sends a transaction without simulating it, and returns its hash.
func (n *node) send(list []solanago.Instruction, signers ...solanago.PrivateKey) (string, error) {
	var latest struct {
		Value struct {
			Blockhash solanago.Hash `json:"blockhash"`
		} `json:"value"`
	}

	finalized := map[string]string{"commitment": "finalized"}
	if err := n.Call(&latest, "getLatestBlockhash", finalized); err != nil {
		return "", err
	}

	// A random unit limit makes equal payments different transactions.
	var salt [6]byte

	_, _ = rand.Read(salt[:])
	units := 400_000 + binary.LittleEndian.Uint32(salt[:])%400_000
	setUnitLimit := solanago.NewInstruction(
		solanago.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, units),
	)
	list = append([]solanago.Instruction{setUnitLimit}, list...)

	tx, err := solanago.NewTransaction(
		list, latest.Value.Blockhash, solanago.TransactionPayer(signers[0].PublicKey()),
	)
	if err != nil {
		return "", err
	}

	_, err = tx.Sign(func(key solanago.PublicKey) *solanago.PrivateKey {
		for i := range signers {
			if signers[i].PublicKey() == key {
				return &signers[i]
			}
		}

		return nil
	})
	if err != nil {
		return "", err
	}

	raw, err := tx.MarshalBinary()
	if err != nil {
		return "", err
	}

	var signature string

	err = n.Call(
		&signature, "sendTransaction", base64.StdEncoding.EncodeToString(raw),
		map[string]any{"encoding": "base64", "skipPreflight": true},
	)
	if err != nil {
		return "", err
	}

	var status struct{ Value []*struct{ Slot uint64 } }
	if err := n.Call(&status, "getSignatureStatuses", []string{signature}); err != nil {
		return "", err
	}

	if len(status.Value) != 1 || status.Value[0] == nil {
		return "", errors.New("the node dropped the transaction")
	}

	return signature, nil
}

func (n *node) accountOf(owner solanago.PublicKey) solanago.PublicKey {
	account, _, err := solanago.FindAssociatedTokenAddressWithProgram(owner, n.mint, n.program)
	if err != nil {
		panic(err)
	}

	return account
}

// createAccount creates an owner's token account, paid by payer.
func (n *node) createAccount(payer, owner solanago.PublicKey) solanago.Instruction {
	return ata.NewCreateIdempotentInstructionWithTokenProgram(payer, owner, n.mint, n.program).Build()
}

// mintTo mints tokens to an owner.
func (n *node) mintTo(owner solanago.PublicKey, amount uint64) []solanago.Instruction {
	authority := n.authority.PublicKey()

	return []solanago.Instruction{
		n.createAccount(authority, owner),
		mintTokens(n.program, n.mint, n.accountOf(owner), authority, amount),
	}
}

// controls acts on a node for third parties.
type controls struct{ *node }

func (c controls) NewAddress(context.Context) (chain.Address, error) {
	key, err := solanago.NewRandomPrivateKey()
	return chain.Address(key.PublicKey().String()), err
}

func (c controls) Settle(context.Context) error { return nil }

func (c controls) Mine(_ context.Context, blocks int) error { return c.SolanaNode.Mine(blocks) }

func (c controls) Fund(ctx context.Context, to chain.Address, asset chain.Asset, amount chain.Amount) error {
	if _, err := c.Pay(ctx, to, asset, amount); err != nil {
		return err
	}

	return c.SolanaNode.Mine(5) // deeper than any fork of the suite
}

func (c controls) Pay(
	_ context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (string, error) {
	return c.send(c.payment(to, asset, amount), c.authority)
}

func (c controls) payment(to chain.Address, asset chain.Asset, amount chain.Amount) []solanago.Instruction {
	key := solanago.MustPublicKeyFromBase58(string(to))

	n, _ := amount.Uint64()
	if asset.Kind == chain.Token {
		return c.mintTo(key, n)
	}

	return []solanago.Instruction{system.NewTransferInstruction(n, c.authority.PublicKey(), key).Build()}
}

func (c controls) PayZero(ctx context.Context, to chain.Address, asset chain.Asset) (string, error) {
	return c.Pay(ctx, to, asset, chain.Amount{})
}

// PayFailing pays, and then pays more than the balance, which reverts both.
func (c controls) PayFailing(
	_ context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (string, error) {
	key := solanago.MustPublicKeyFromBase58(string(to))
	overdraft := system.NewTransferInstruction(9_000_000*sol, c.authority.PublicKey(), key)

	return c.send(append(c.payment(to, asset, amount), overdraft.Build()), c.authority)
}

// PayStray mints tokens into a token account of an address that is not the associated one.
func (c controls) PayStray(_ context.Context, to chain.Address, amount chain.Amount) (chain.Address, error) {
	owner, payer := solanago.MustPublicKeyFromBase58(string(to)), c.authority.PublicKey()

	account, err := solanago.NewRandomPrivateKey()
	if err != nil {
		return "", err
	}

	size := uint64(165)
	if c.program == solanago.Token2022ProgramID {
		size = 165 + 1 + 4 + 8 // TransferFeeAmount
	}

	var rent uint64
	if err := c.Call(&rent, "getMinimumBalanceForRentExemption", size); err != nil {
		return "", err
	}

	n, _ := amount.Uint64()
	_, err = c.send([]solanago.Instruction{
		system.NewCreateAccountInstruction(rent, size, c.program, payer, account.PublicKey()).Build(),
		initializeAccount(c.program, account.PublicKey(), c.mint, owner),
		mintTokens(c.program, c.mint, account.PublicKey(), payer, n),
	}, c.authority, account)

	return chain.Address(account.PublicKey().String()), err
}

// Freeze freezes the token account of an address.
func (c controls) Freeze(_ context.Context, address chain.Address, asset chain.Asset) error {
	if asset.Kind != chain.Token {
		return fmt.Errorf("%s cannot be frozen", asset.Symbol)
	}

	owner := solanago.MustPublicKeyFromBase58(string(address))

	authority := c.authority.PublicKey()

	_, err := c.send([]solanago.Instruction{
		c.createAccount(authority, owner),
		freezeAccount(c.program, c.accountOf(owner), c.mint, authority),
	}, c.authority)
	if err != nil {
		return err
	}

	return c.SolanaNode.Mine(1)
}

func (c controls) Fork(_ context.Context, depth int, keep ...string) error {
	return c.SolanaNode.Fork(depth, keep...)
}

func (c controls) Prune(_ context.Context, below uint64) error { return c.SolanaNode.Prune(below) }

func (c controls) Expire(_ context.Context, tx chain.Signed) error {
	var tip uint64
	if err := c.Call(&tip, "getBlockHeight", map[string]string{"commitment": "confirmed"}); err != nil {
		return err
	}

	if tip > tx.ValidToHeight {
		return nil
	}

	return c.SolanaNode.Mine(int(tx.ValidToHeight-tip) + 1)
}

// freshSigner returns a signer with unused keys.
func freshSigner(t *testing.T) *hdkey.Signer {
	t.Helper()

	mnemonic, err := hdkey.NewMnemonic(rand.Reader, 128)
	must(t, err)
	signer, err := hdkey.New(mnemonic, "")
	must(t, err)

	return signer
}
