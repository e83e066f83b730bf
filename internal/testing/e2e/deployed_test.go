package e2e

import (
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// gasOfCalls is the gas limit of calls that are not estimated first. A test token takes less.
const gasOfCalls = 200_000

// deployed is a contract that the payer deployed.
type deployed struct {
	p       *payer
	abi     abi.ABI
	address common.Address
}

// deployContract deploys a contract and waits until it is in a block.
func (p *payer) deployContract(c contracts.Contract, args ...any) deployed {
	p.t.Helper()

	parsed, err := abi.JSON(strings.NewReader(c.ABI))
	if err != nil {
		p.t.Fatal(err)
	}

	packed, err := parsed.Pack("", args...)
	if err != nil {
		p.t.Fatal(err)
	}

	code := append(common.FromHex(c.Bytecode), packed...)

	gas, err := p.client.EstimateGas(p.t.Context(), ethereum.CallMsg{From: p.address, Data: code})
	if err != nil {
		p.t.Fatal(err)
	}

	tx := p.transact(nil, new(big.Int), gas, code)
	p.mined(tx)

	return deployed{p, parsed, crypto.CreateAddress(p.address, tx.Nonce())}
}

// transact sends a call of a method into the pool. The value is in wei.
func (d deployed) transact(value *big.Int, method string, args ...any) *types.Transaction {
	d.p.t.Helper()
	return d.transactRaw(value, d.pack(method, args...))
}

// transactRaw is transact with packed arguments.
func (d deployed) transactRaw(value *big.Int, data []byte) *types.Transaction {
	d.p.t.Helper()
	return d.p.transact(&d.address, value, gasOfCalls, data)
}

// call returns the first result of a method that changes nothing.
func (d deployed) call(method string, args ...any) any {
	d.p.t.Helper()

	answer, err := d.p.client.CallContract(
		d.p.t.Context(),
		ethereum.CallMsg{From: d.p.address, To: &d.address, Data: d.pack(method, args...)},
		nil,
	)
	if err != nil {
		d.p.t.Fatal(err)
	}

	results, err := d.abi.Unpack(method, answer)
	if err != nil || len(results) == 0 {
		d.p.t.Fatalf("%s: %v, %v", method, results, err)
	}

	return results[0]
}

func (d deployed) pack(method string, args ...any) []byte {
	d.p.t.Helper()

	data, err := d.abi.Pack(method, args...)
	if err != nil {
		d.p.t.Fatal(err)
	}

	return data
}

// in returns the contract for another payer, as a subtest has it.
func (d deployed) in(p *payer) deployed {
	d.p = p
	return d
}
