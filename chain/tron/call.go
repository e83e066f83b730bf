package tron

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
)

// callRequest is a request of triggerconstantcontract.
type callRequest struct {
	Owner    string `json:"owner_address"`
	Contract string `json:"contract_address"`
	Data     string `json:"data"`
}

// callResult is the result of a simulated call.
type callResult struct {
	// reverted means that the contract reverted, or does not exist.
	reverted bool
	result   []byte
	// energy is the energy that the call uses.
	energy uint64
}

// maxEnergy bounds the energy that a node may report.
const maxEnergy = 1 << 40

// simulate runs a call without a transaction (triggerconstantcontract).
func (e *endpoint) simulate(
	ctx context.Context,
	s service,
	owner, contract address,
	data []byte,
) (callResult, error) {
	const method = "triggerconstantcontract"

	var answer struct {
		Result struct {
			Result  bool   `json:"result"`
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"result"`
		Energy      int64    `json:"energy_used"`
		Constant    []string `json:"constant_result"`
		Transaction struct {
			Ret []struct {
				Ret string `json:"ret"`
			} `json:"ret"`
		} `json:"transaction"`
	}

	found, err := e.post(
		ctx, s, method, callRequest{nodeHex(owner), nodeHex(contract), hex.EncodeToString(data)},
		&answer,
	)
	if err != nil {
		return callResult{}, err
	}

	if answer.Result.Code == "CONTRACT_VALIDATE_ERROR" {
		return callResult{reverted: true}, nil // there is no such contract
	}

	if !found || !answer.Result.Result || len(answer.Transaction.Ret) != 1 || answer.Energy < 0 ||
		answer.Energy > maxEnergy {
		return callResult{}, e.Garbled(
			"%s: %s %s", method, e.Clean(answer.Result.Code), e.Clean(decodeMessage(answer.Result.Message)),
		)
	}

	call := callResult{reverted: answer.Transaction.Ret[0].Ret == "FAILED", energy: uint64(answer.Energy)}
	if len(answer.Constant) > 0 {
		if call.result, err = hex.DecodeString(answer.Constant[0]); err != nil {
			return callResult{}, e.Garbled("%s: a result that is no hex", method)
		}
	}

	return call, nil
}

// decodeMessage returns a message that nodes may write as the hex of its text.
func decodeMessage(message string) string {
	if text, err := hex.DecodeString(message); err == nil {
		return string(text)
	}

	return message
}

// uint256 returns the one uint256 that a view function returned; ok is false for other results.
func (r callResult) uint256() (chain.Amount, bool) {
	if r.reverted || len(r.result) != 32 {
		return chain.Amount{}, false
	}

	n, err := chain.AmountFromBytes(r.result)

	return n, err == nil
}

// errNoNumber is a contract that reverts a view function or answers another form, on any node.
var errNoNumber = errors.New("it reverts or answers no number: is it the token it is configured as?")

// callUint256 calls a view function that returns one uint256; else it is errNoNumber.
func (e *endpoint) callUint256(
	ctx context.Context,
	s service,
	owner, contract address,
	data []byte,
) (chain.Amount, error) {
	call, err := e.simulate(ctx, s, owner, contract, data)
	if err != nil {
		return chain.Amount{}, err
	}

	n, ok := call.uint256()
	if !ok {
		return chain.Amount{}, fmt.Errorf("contract %s: %w", canonical(contract), errNoNumber)
	}

	return n, nil
}
