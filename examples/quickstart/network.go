package main

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/sim"
)

// network is a driver with a payer who has coins.
type network struct {
	driver payments.ChainDriver
	slug   string
	asset  string
	// feeAddress receives the platform fee.
	feeAddress string
	// pay sends base units of the native coin from the payer and returns the transaction's hash.
	pay func(ctx context.Context, to chain.Address, amount chain.Amount) (string, error)
	// run makes blocks until ctx ends.
	run func(ctx context.Context)
}

// dial returns a simulated network, or the real one behind a JSON-RPC URL.
func dial(ctx context.Context, rpc string, log *slog.Logger) (*network, error) {
	if rpc != "" {
		return dialEVM(ctx, rpc, log)
	}

	n := sim.DefaultNetwork()
	n.BlockTime = time.Second
	simulated := sim.New(sim.Config{Network: n})

	return &network{
		driver:     simulated.Driver(),
		slug:       n.Slug,
		asset:      n.NativeAsset,
		feeAddress: string(simulated.NewAddress()),
		pay: func(_ context.Context, to chain.Address, amount chain.Amount) (string, error) {
			return simulated.Pay(to, n.NativeAsset, amount), nil
		},
		run: simulated.Run,
	}, nil
}

// developmentKey is the first account of the public mnemonic "test test test test test test test test test
// test test junk", which anvil and hardhat fund. It is public.
const developmentKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

// dialEVM returns the network of an EVM node, with the payer of QUICKSTART_PAYER_KEY.
func dialEVM(ctx context.Context, rpc string, log *slog.Logger) (*network, error) {
	const help = "start a node, as with anvil, or leave -evm-rpc out for a simulated network"

	client, err := ethclient.DialContext(ctx, rpc)
	if err != nil {
		return nil, fmt.Errorf("-evm-rpc: connect to the node: %w: %s", err, help)
	}

	chainID, err := client.ChainID(ctx)
	if err != nil {
		return nil, fmt.Errorf("-evm-rpc: read the node's chain id: %w: %s", err, help)
	}

	n := evm.Local(chainID.Uint64())

	d, err := evm.New(evm.Config{Network: n, RPC: rpc, Logger: log})
	if err != nil {
		return nil, err
	}

	secret := os.Getenv("QUICKSTART_PAYER_KEY")
	if secret == "" {
		secret = developmentKey
	}

	key, err := crypto.HexToECDSA(strings.TrimPrefix(secret, "0x"))
	if err != nil {
		return nil, fmt.Errorf("QUICKSTART_PAYER_KEY is not a private key: 64 hex digits")
	}

	p := &payer{client: client, key: key, from: crypto.PubkeyToAddress(key.PublicKey), chainID: chainID}

	return &network{
		driver:     d,
		slug:       n.Slug,
		asset:      n.NativeAsset,
		feeAddress: crypto.PubkeyToAddress(key.PublicKey).Hex(),
		pay:        p.pay,
		run:        p.keepMining,
	}, nil
}

// payer is an EVM account of a customer.
type payer struct {
	client  *ethclient.Client
	key     *ecdsa.PrivateKey
	from    common.Address
	chainID *big.Int

	mu sync.Mutex // held from reading the nonce until the transaction is sent
}

// pay sends an EIP-1559 transfer and returns its hash; the amount is in wei.
func (p *payer) pay(ctx context.Context, to chain.Address, amount chain.Amount) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	nonce, err := p.client.PendingNonceAt(ctx, p.from)
	if err != nil {
		return "", err
	}

	tip, err := p.client.SuggestGasTipCap(ctx)
	if err != nil {
		return "", err
	}

	head, err := p.client.HeaderByNumber(ctx, nil)
	if err != nil {
		return "", err
	}

	receiver := common.HexToAddress(string(to))

	tx, err := types.SignNewTx(p.key, types.LatestSignerForChainID(p.chainID), &types.DynamicFeeTx{
		ChainID:   p.chainID,
		Nonce:     nonce,
		To:        &receiver,
		Value:     amount.Big(),
		Gas:       21_000,
		GasTipCap: tip,
		GasFeeCap: new(big.Int).Add(tip, new(big.Int).Mul(head.BaseFee, big.NewInt(2))),
	})
	if err != nil {
		return "", err
	}

	return tx.Hash().Hex(), p.client.SendTransaction(ctx, tx)
}

// keepMining sends one wei to itself every second. Development nodes mine only when there is a
// transaction, and confirmations need blocks.
func (p *payer) keepMining(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// The next tick makes up for a failure.
			_, _ = p.pay(ctx, chain.Address(p.from.Hex()), chain.Units(1))
		}
	}
}
