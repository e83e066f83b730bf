package main

// Accounts, balances and resources. Coin and contracts live in go-ethereum's state, one sun being
// one wei; what Tron knows beyond that lives beside it.

import (
	"fmt"
	"maps"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

var emptyRoot = types.EmptyRootHash

// account is what Tron knows of an activated account.
type account struct {
	contract    bool
	created     int64
	freeUsed    int64 // bandwidth of the daily allowance that was used
	netLimit    int64 // bandwidth from staking
	netUsed     int64
	energyLimit int64 // energy that a test gave it, as if from staking
	energyUsed  int64
	staked      int64            // sun for energy that is not delegated
	acquired    int64            // sun for energy that others delegated to it
	permission  int64            // id of the one that the account's own key is in; 0 is the owner permission
	tokens      map[string]int64 // base units of TRC-10 tokens by id; replaced, never changed
}

// delegation names a delegation of energy.
type delegation struct{ from, to address }

// chainState is the state after a block. It does not change.
type chainState struct {
	root      common.Hash
	accounts  map[address]account
	delegated map[delegation]int64 // sun
}

// store keeps the states of all blocks.
type store struct{ db state.Database }

func newStore() *store { return &store{state.NewDatabaseForTesting()} }

// workspace is a chain state that is being changed.
type workspace struct {
	db        *state.StateDB
	accounts  map[address]account
	delegated map[delegation]int64
	txs       int
}

func (s *store) open(w chainState) (*workspace, error) {
	db, err := state.New(w.root, s.db)
	if err != nil {
		return nil, err
	}

	ws := &workspace{db: db, accounts: maps.Clone(w.accounts), delegated: map[delegation]int64{}}
	maps.Copy(ws.delegated, w.delegated)

	return ws, nil
}

// commit ends the work and returns the new state.
func (ws *workspace) commit(height uint64) (chainState, error) {
	root, err := ws.db.Commit(rules, height)
	if err != nil {
		return chainState{}, fmt.Errorf("commit block %d: %w", height, err)
	}

	return chainState{root: root, accounts: ws.accounts, delegated: ws.delegated}, nil
}

// undo returns a function that takes back everything since the call.
func (ws *workspace) undo() func() {
	snapshot, accounts, delegated := ws.db.Snapshot(), maps.Clone(ws.accounts), maps.Clone(ws.delegated)

	return func() {
		ws.db.RevertToSnapshot(snapshot)
		ws.accounts, ws.delegated = accounts, delegated
	}
}

func (ws *workspace) create(a address, contract bool, at int64) {
	ws.accounts[a] = account{contract: contract, created: at}
}

func (ws *workspace) exists(a address) bool { _, ok := ws.accounts[a]; return ok }

func (ws *workspace) balance(a address) int64 { return int64(ws.db.GetBalance(a).Uint64()) }

func (ws *workspace) add(a address, sun int64) {
	ws.db.AddBalance(a, uint256.NewInt(uint64(sun)), tracing.BalanceChangeUnspecified)
}

func (ws *workspace) take(a address, sun int64) bool {
	if sun < 0 || ws.balance(a) < sun {
		return false
	}

	ws.db.SubBalance(a, uint256.NewInt(uint64(sun)), tracing.BalanceChangeUnspecified)

	return true
}

// chainConfig is Ethereum as of Istanbul, the newest whose gas has no notion of cold storage: that
// is nearest to TVM's energy.
var chainConfig = &params.ChainConfig{
	ChainID:             big.NewInt(1),
	HomesteadBlock:      new(big.Int),
	EIP150Block:         new(big.Int),
	EIP155Block:         new(big.Int),
	EIP158Block:         new(big.Int),
	ByzantiumBlock:      new(big.Int),
	ConstantinopleBlock: new(big.Int),
	PetersburgBlock:     new(big.Int),
	IstanbulBlock:       new(big.Int),
}

var rules = chainConfig.Rules(new(big.Int), false, 0)
