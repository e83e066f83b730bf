package evm

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// The function selectors of balanceOf(address) and decimals() (EIP-20).
var (
	balanceOfSelector = []byte{0x70, 0xa0, 0x82, 0x31}
	decimalsSelector  = []byte{0x31, 0x3c, 0xe5, 0x67}
)

// Balances returns the balances (base units) of holdings at the state after block at, in the order given. It
// makes one call per holding and node, pinned to the block's hash (EIP-1898). At a node that refuses the
// hash, the call names the height, and the node's block there is compared before and after. No block proves a
// balance. So where several nodes are configured, two of them must agree about it. Errors:
//
//   - fault.Invalid (block_invalid): at is zero
//   - fault.Invalid (address_invalid, asset_not_enabled): a holding is not of this network
//   - fault.Unavailable: no node has that block
//   - chain.UnreadableError, with all other balances: a token's contract reverts or returns no number, or no two
//     nodes agree (chain.ErrNotAgreed)
func (d *driver) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	if at.IsZero() {
		return nil, fault.New(fault.Invalid, "block_invalid", "balances need a block to be read at")
	}

	calls, err := d.balanceCalls(holdings, nil)
	if err != nil || len(calls) == 0 {
		return nil, err
	}

	return agree.Balances(ctx, d.nodes, d.attempts, at.Height, holdings, d.balancesAt(at))
}

// balancesAt returns the reading of holdings at a block.
func (d *driver) balancesAt(at chain.Ref) agree.ReadBalances[*endpoint] {
	return func(
		ctx context.Context,
		node *endpoint,
		holdings []chain.Holding,
	) ([]chain.Amount, []chain.UnreadableHolding, error) {
		calls, err := node.stateAt(ctx, at, func(block any) ([]*call, error) {
			return d.balanceCalls(holdings, block)
		})
		if err != nil {
			return nil, nil, err
		}

		return balances(node, calls, holdings)
	}
}

// balanceCalls returns the calls that read holdings at a block, in the order given.
func (d *driver) balanceCalls(holdings []chain.Holding, block any) ([]*call, error) {
	calls := make([]*call, len(holdings))

	for i, holding := range holdings {
		rpcCall, err := d.balanceCall(holding, block)
		if err != nil {
			return nil, err
		}

		calls[i] = rpcCall
	}

	return calls, nil
}

// balances returns the answers to calls, one for each holding, and the holdings whose contract gave no
// balance.
func balances(
	node *endpoint,
	calls []*call,
	holdings []chain.Holding,
) (out []chain.Amount, unreadable []chain.UnreadableHolding, err error) {
	out = make([]chain.Amount, len(holdings))

	for i, rpcCall := range calls {
		balance, err := rpcCall.amount(node)
		if rpcCall.failedInContract() {
			unreadable = append(unreadable, chain.UnreadableHolding{
				Holding: holdings[i],
				Index:   i,
				Err:     err,
			})

			continue
		}

		if err != nil {
			return nil, nil, err
		}

		out[i] = balance
	}

	return out, unreadable, nil
}

// failedInContract reports whether the node ran the contract of an eth_call and the contract reverted,
// failed, or returned something other than one word. Then no other node would answer better.
func (c *call) failedInContract() bool {
	if c.method != "eth_call" {
		return false
	}

	if refusal, ok := errors.AsType[*failover.Refusal](c.err); ok {
		message := strings.ToLower(refusal.Message)

		return isRevert(c.err) || slices.ContainsFunc(contractFailures, func(text string) bool {
			return strings.Contains(message, text)
		})
	}

	var out hexutil.Bytes

	return !c.isNull() && json.Unmarshal(c.result, &out) == nil && len(out) != 32
}

// contractFailures are parts of the messages for a call that ended without a revert; such failures have no
// code of their own. Source: go-ethereum, core/vm/errors.go.
var contractFailures = []string{
	"out of gas",
	"invalid opcode",
	"invalid jump destination",
	"stack underflow",
	"stack limit reached",
}

// balanceCall returns the call that reads a holding at a block: a tag, or an EIP-1898 object.
func (d *driver) balanceCall(holding chain.Holding, block any) (*call, error) {
	owner, err := parseAddress(string(holding.Address))
	if err != nil {
		return nil, err
	}

	asset, ok := d.network.AssetByID(holding.AssetID)
	if !ok {
		return nil, fault.New(
			fault.Invalid, "asset_not_enabled", "network %s has no asset %s", d.network.Slug,
			holding.AssetID,
		)
	}

	if asset.Kind == chain.Native {
		return newCall("eth_getBalance", owner, block), nil
	}

	return viewCall(
		common.HexToAddress(string(asset.Contract)),
		append(balanceOfSelector[:4:4], common.LeftPadBytes(owner[:], 32)...), block,
	), nil
}

// viewCall returns the eth_call of a contract's view function.
func viewCall(to common.Address, input []byte, block any) *call {
	return newCall("eth_call", map[string]any{"to": to, "data": hexutil.Bytes(input)}, block)
}

// amount decodes the result of balanceCall, in base units.
func (c *call) amount(node *endpoint) (chain.Amount, error) {
	if c.method == "eth_call" {
		return c.uint256(node)
	}

	var n hexutil.Big
	if err := c.decode(node, &n); err != nil {
		return chain.Amount{}, err
	}

	return node.amount(&n)
}

// uint256 decodes the result of a view function that returns one uint256.
func (c *call) uint256(node *endpoint) (chain.Amount, error) {
	var out hexutil.Bytes
	if err := c.decode(node, &out); err != nil {
		return chain.Amount{}, err
	}

	if len(out) != 32 {
		return chain.Amount{}, node.Garbled(
			"a contract answered %d bytes instead of 32: is it the token it is configured as?",
			len(out),
		)
	}

	return chain.AmountFromBytes(out)
}

// checkTokens compares the decimals of each token with those of its contract. A difference is
// fault.Stopped (token_mismatch).
func (d *driver) checkTokens(ctx context.Context, node *endpoint) error {
	var (
		calls  []*call
		assets []chain.Asset
	)

	for contract, asset := range d.tokens {
		calls = append(calls, viewCall(contract, decimalsSelector, "latest"))
		assets = append(assets, asset)
	}

	if len(calls) == 0 {
		return nil
	}

	if err := node.do(ctx, calls...); err != nil {
		return err
	}

	for i, rpcCall := range calls {
		decimals, err := rpcCall.uint256(node)

		_, noAnswer := errors.AsType[*failover.Failure](err)
		if noAnswer || isRevert(err) || (err == nil && decimals != chain.Units(uint64(assets[i].Decimals))) {
			return fault.New(fault.Stopped, "token_mismatch",
				"token %s of network %s: contract %s does not answer %d decimals; correct the configuration",
				assets[i].Symbol, d.network.Slug, assets[i].Contract, assets[i].Decimals)
		}

		if err != nil {
			return err
		}
	}

	return nil
}
