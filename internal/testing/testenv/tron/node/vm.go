package main

// Contract calls in go-ethereum's EVM.

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/holiman/uint256"
)

// internalTx is a call made by a contract.
type internalTx struct {
	from, to address
	value    int64
	note     string
	rejected bool
}

// outcome is what a call did.
type outcome struct {
	result   []byte
	used     int64 // energy
	err      error
	logs     []*types.Log
	internal []internalTx
}

// call runs a call in the workspace; what it did stays only when it succeeded.
func (n *node) call(
	ws *workspace,
	from, to address,
	value int64,
	data []byte,
	limit uint64,
	height uint64,
	timestamp int64,
) outcome {
	var o outcome

	evm := n.evm(ws, from, height, timestamp, o.traceInternal())
	ws.txs++
	hash := common.BigToHash(big.NewInt(int64(ws.txs)))
	ws.db.SetTxContext(hash, ws.txs, 0)

	gas := limit / n.config.EnergyFactor
	result, left, err := evm.Call(from, to, data, vm.NewGasBudget(gas, 0), uint256.NewInt(uint64(value)))
	o.result, o.err = result, err

	o.used = int64((gas - left.ExecutionGas) * n.config.EnergyFactor)
	if err == nil {
		o.logs = ws.db.GetLogs(hash, height, common.Hash{}, 0)
		for _, t := range o.internal {
			if t.value > 0 && !t.rejected && !ws.exists(t.to) {
				ws.create(t.to, false, timestamp)
			}
		}
	} else {
		for i := range o.internal {
			o.internal[i].rejected = true
		}
	}

	return o
}

// traceInternal returns hooks that record the calls made by contracts in o.internal.
func (o *outcome) traceInternal() *tracing.Hooks {
	var open []int // indices of the calls that have not returned

	return &tracing.Hooks{
		OnEnter: func(depth int, kind byte, from, to common.Address, _ []byte, _ uint64, value *big.Int) {
			if depth == 0 {
				return
			}

			t := internalTx{from: from, to: to, note: "call"}
			if value != nil {
				t.value = value.Int64()
			}

			switch vm.OpCode(kind) {
			case vm.CREATE, vm.CREATE2:
				t.note = "create"
			case vm.SELFDESTRUCT:
				t.note = "suicide"
			default: // a call
			}

			open = append(open, len(o.internal))
			o.internal = append(o.internal, t)
		},
		OnExit: func(depth int, _ []byte, _ uint64, _ error, reverted bool) {
			if depth == 0 {
				return
			}

			at := open[len(open)-1]

			open = open[:len(open)-1]
			if reverted { // with everything that it called
				for i := at; i < len(o.internal); i++ {
					o.internal[i].rejected = true
				}
			}
		},
	}
}

func (n *node) evm(
	ws *workspace,
	origin address,
	height uint64,
	timestamp int64,
	hooks *tracing.Hooks,
) *vm.EVM {
	evm := vm.NewEVM(vm.BlockContext{
		CanTransfer: core.CanTransfer,
		Transfer:    core.Transfer,
		GetHash:     func(uint64) common.Hash { return common.Hash{} },
		BlockNumber: new(big.Int).SetUint64(height),
		Time:        uint64(timestamp / 1000),
		Difficulty:  new(big.Int),
		GasLimit:    1 << 40,
		BaseFee:     new(big.Int),
	}, ws.db, chainConfig, vm.Config{Tracer: hooks, NoBaseFee: true})
	evm.SetTxContext(vm.TxContext{Origin: origin, GasPrice: new(uint256.Int)})

	return evm
}

// deployer has no key; it deploys what the configuration names.
var deployer = common.HexToAddress("0xdeb107e1de0000000000000000000000000000de")

func (n *node) deploy(ws *workspace, index int, d Deployment) (address, error) {
	code, err := hex.DecodeString(strings.TrimPrefix(d.Bytecode, "0x"))
	if err != nil {
		return address{}, err
	}

	evm := n.evm(ws, deployer, 0, 0, nil)

	_, a, _, err := evm.Create(deployer, code, vm.NewGasBudget(1<<32, 0), new(uint256.Int))
	if err != nil {
		return address{}, fmt.Errorf("deploy: %w", err)
	}

	ws.create(a, true, 0)

	for _, text := range d.Calls {
		data, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		if err != nil {
			return a, err
		}

		if o := n.call(ws, deployer, a, 0, data, 1<<32, 0, 0); o.err != nil {
			return a, fmt.Errorf("call %s: %w", text, o.err)
		}
	}

	return a, nil
}

// resultName is the word of Transaction.Result.contractResult for an outcome.
func (o outcome) resultName() string {
	switch {
	case o.err == nil:
		return "SUCCESS"
	case errors.Is(o.err, vm.ErrExecutionReverted):
		return "REVERT"
	case errors.Is(o.err, vm.ErrOutOfGas), errors.Is(o.err, vm.ErrCodeStoreOutOfGas):
		return "OUT_OF_ENERGY"
	case errors.Is(o.err, vm.ErrInvalidJump):
		return "BAD_JUMP_DESTINATION"
	}

	return "UNKNOWN"
}

// resultText is what java-tron says in resMessage.
func (o outcome) resultText() string {
	switch o.resultName() {
	case "REVERT":
		return "REVERT opcode executed"
	case "OUT_OF_ENERGY":
		return "Not enough energy for an operation"
	}

	return o.err.Error()
}
