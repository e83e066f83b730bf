package systemtest

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/params"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// waitForPool waits until the node would take the next transaction of an account at a nonce.
func waitForPool(t *testing.T, backend *simulated.Backend, account common.Address, nonce uint64) {
	t.Helper()

	deadline := time.After(20 * time.Second)

	for {
		pending, err := backend.Client().PendingNonceAt(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}

		if pending == nonce {
			return
		}

		select {
		case <-deadline:
			t.Fatalf("the pool's next nonce is %d, want %d", pending, nonce)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Blocks of go-ethereum verify, with as many transactions as it takes for the keys of their tries to grow.
func TestGethBlocksVerify(t *testing.T) {
	backend, url := gethNode(t)

	key, err := crypto.HexToECDSA(testenv.WellKnownDevAccounts[0].Key)
	if err != nil {
		t.Fatal(err)
	}

	to := common.Address{0: 9}
	chainID := params.AllDevChainProtocolChanges.ChainID
	signer := types.LatestSignerForChainID(chainID)
	nonce := uint64(0)

	counts := []int{0, 1, 2, 17, 128, 130, 300}
	for _, count := range counts {
		for i := range count {
			var inner types.TxData

			switch i % 3 {
			case 0:
				inner = &types.LegacyTx{
					Nonce:    nonce,
					GasPrice: big.NewInt(3e9),
					Gas:      21_000,
					To:       &to,
					Value:    big.NewInt(1),
				}
			case 1:
				inner = &types.AccessListTx{
					ChainID:    chainID,
					Nonce:      nonce,
					GasPrice:   big.NewInt(3e9),
					Gas:        30_000,
					To:         &to,
					Value:      big.NewInt(1),
					AccessList: types.AccessList{{Address: to, StorageKeys: []common.Hash{{1}}}},
				}
			default:
				inner = &types.DynamicFeeTx{
					ChainID:   chainID,
					Nonce:     nonce,
					GasTipCap: big.NewInt(1e9),
					GasFeeCap: big.NewInt(3e9),
					Gas:       21_000,
					To:        &to,
					Value:     big.NewInt(1),
				}
			}

			nonce++

			tx, err := types.SignNewTx(key, signer, inner)
			if err != nil {
				t.Fatal(err)
			}

			if err := backend.Client().SendTransaction(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
		}

		waitForPool(t, backend, crypto.PubkeyToAddress(key.PublicKey), nonce)
		backend.Commit()
	}

	driver, err := evm.New(evm.Config{Network: evm.Local(chainID.Uint64()), RPC: url})
	if err != nil {
		t.Fatal(err)
	}

	blocks, err := driver.(chain.BlockScanner).Blocks(t.Context(), 0, uint64(len(counts)))
	if err != nil || len(blocks) != len(counts)+1 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}

	for i, block := range blocks {
		want := 0
		if i > 0 {
			want = counts[i-1]
		}

		if block.Unverified != "" || len(block.Transfers) != want || len(block.Spent) != want {
			t.Errorf(
				"block %d: %q, %d transfers and %d transactions, want %d",
				i, block.Unverified, len(block.Transfers), len(block.Spent), want,
			)
		}
	}
}
