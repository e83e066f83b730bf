package evm

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Gas limits are measured: the very transfer is estimated under the rules in force, with the real value and
// receiver. No constant of a gas schedule is used, because schedules change (EIP-2780, EIP-8037).

// gasLimit returns the gas limit for a node's estimates. Native coin to an account without code gets exactly
// the gas that it uses, as nothing that happens before changes it. Every other transfer gets a fifth more,
// rounded up, since state may change before inclusion. A token transfer from a master wallet gets enough for
// a receiver whose balance becomes zero meanwhile: exchanges empty their deposit addresses. A release does
// not: its top-up pays for the limit, and unused gas would stay behind.
func (d *driver) gasLimit(
	node *endpoint,
	calls quoteCalls,
	msg transferMsg,
	quote networkQuote,
) (uint64, error) {
	if isRevert(calls.gas.err) {
		return 0, notPayable(calls.gas.err, canonical(msg.payee))
	}

	gas, err := calls.gas.gas(node)
	if err != nil {
		return 0, err
	}

	// A token may refuse a transfer to an address without a key. That says nothing about the real receiver.
	if calls.fresh != nil && calls.fresh.refusal() == nil {
		fresh, err := calls.fresh.gas(node)
		if err != nil {
			return 0, err
		}

		gas = max(gas, fresh)
	}

	if msg.asset.Kind == chain.Native && len(quote.code) == 0 && !d.gasPublishes(quote.latest) {
		return calls.exactGas(gas), nil
	}

	return gas + (gas+4)/5, nil
}

// exactGas returns the gas of a transfer that leaves nothing at its sender. It is the gas that the simulation
// used, if the estimate exceeds that by at most estimateMargin; else the estimate.
func (q quoteCalls) exactGas(estimate uint64) uint64 {
	if q.used == nil || q.used.refusal() != nil {
		return estimate
	}

	var blocks []struct {
		Calls []struct {
			Status  hexutil.Uint64 `json:"status"`
			GasUsed hexutil.Uint64 `json:"gasUsed"`
		} `json:"calls"`
	}

	if json.Unmarshal(q.used.result, &blocks) != nil || len(blocks) != 1 || len(blocks[0].Calls) != 1 {
		return estimate
	}

	done := blocks[0].Calls[0]
	used, least := uint64(done.GasUsed), estimate-estimate/estimateMargin

	if done.Status == 1 && least <= used && used <= estimate {
		return used
	}

	return estimate
}

// estimateMargin bounds how far an estimate may exceed the gas used: by one part in estimateMargin. Source:
// go-ethereum, internal/ethapi estimateGasErrorRatio, 1.5 percent.
const estimateMargin = 50

// maxEstimate bounds estimates, so that no product overflows.
const maxEstimate = 1 << 40

// gas decodes an estimate.
func (c *call) gas(node *endpoint) (uint64, error) {
	var gas hexutil.Uint64
	if err := c.decode(node, &gas); err != nil {
		return 0, err
	}

	if gas == 0 || gas > maxEstimate {
		return 0, node.Garbled("a gas estimate of %d", uint64(gas))
	}

	return uint64(gas), nil
}

// nitroGasLimit is the lowest gas limit of a header that marks an Arbitrum rollup. Its headers say 2^50,
// because its blocks are bounded by other means. Source: Arbitrum Nitro, l2pricing.GethBlockGasLimit.
const nitroGasLimit = 1 << 50

// gasPublishes reports whether the network counts the cost of publishing as gas.
func (d *driver) gasPublishes(latest headerJSON) bool {
	return d.format.gasPublishes ||
		d.format == &otherFormat && latest.GasLimit != nil && *latest.GasLimit >= nitroGasLimit
}

// checkGas returns a failure of the node for a gas limit above the one that a transaction may have.
func (d *driver) checkGas(node *endpoint, gas uint64, shown shownBlock) error {
	if most := d.mostGas(shown); gas > most {
		return node.Garbled("a gas limit of %d, more than the %d that a transaction may have", gas, most)
	}

	return nil
}

// agreedGas returns the gas limit that two nodes agree about, or that of one node where no other answers. Two
// limits agree within the headroom of estimates, and the higher one counts. If no two agree, the error is
// fault.Unavailable (nodes_disagree): a limit too low fails a payout, and one too high strands a top-up.
func (d *driver) agreedGas(quote networkQuote, others []networkQuote) (uint64, error) {
	said := []uint64{quote.gas}

	for _, other := range others {
		for _, earlier := range said {
			if sameGas(earlier, other.gas) {
				return max(earlier, other.gas), nil
			}
		}

		said = append(said, other.gas)
	}

	if len(said) > 1 {
		return 0, fault.New(
			fault.Unavailable, "nodes_disagree",
			"the nodes of network %s estimate the gas of a transfer otherwise each: %d", d.network.Slug, said,
		)
	}

	return quote.gas, nil
}

// sameGas reports whether two gas limits differ by less than the headroom of estimates.
func sameGas(a, b uint64) bool { return max(a, b) <= min(a, b)+(min(a, b)+4)/5 }

// estimateFunded estimates a transfer of native coin whose sender cannot pay it yet, as if it held twice the
// amount. If the node refuses that, it estimates a transfer of the amount that the sender holds.
func (e *endpoint) estimateFunded(ctx context.Context, msg transferMsg, balance chain.Amount) (*call, error) {
	funded := map[common.Address]any{
		msg.from: map[string]any{"balance": (*hexutil.Big)(msg.value.Add(msg.value).Big())},
	}

	estimate := newCall("eth_estimateGas", msg.callArgs(), "latest", funded)
	if err := e.do(ctx, estimate); err != nil || estimate.refusal() == nil || isRevert(estimate.err) {
		return estimate, err
	}

	msg.value = chaindata.Min(msg.value, balance)
	estimate = newCall("eth_estimateGas", msg.callArgs())

	return estimate, e.do(ctx, estimate)
}

// freshReceiver returns an address that holds nothing of a token, because nobody has its key.
func freshReceiver(msg transferMsg) common.Address {
	return common.BytesToAddress(crypto.Keccak256([]byte("payments: no receiver"), msg.payee[:], msg.to[:]))
}

// isRevert reports whether the contract reverted. go-ethereum, Erigon, Reth and Anvil answer code
// 3, Nethermind -32015. Others, and a call that uses up its gas, say so only in the message.
func isRevert(err error) bool {
	refusal, ok := errors.AsType[*failover.Refusal](err)
	if !ok {
		return false
	}

	message := strings.ToLower(refusal.Message)

	return refusal.Code == codeReverted || refusal.Code == -32015 || strings.Contains(message, "revert") ||
		strings.Contains(message, "gas required exceeds allowance")
}

// Fits reports whether a block may hold a transaction. Blocks and the network's limit for one transaction
// must allow its gas, and its call must need no more gas than it has. If the nodes cannot be asked, the error
// is fault.Unavailable.
func (d *driver) Fits(ctx context.Context, signed chain.Signed) (fits bool, err error) {
	tx, from, err := d.decodeSigned(signed.Raw)
	if err != nil {
		return false, err
	}

	value, err := chain.AmountFromBig(tx.Value())
	if err != nil {
		return false, malformedTx(err)
	}

	msg := transferMsg{from: from, payee: *tx.To(), to: *tx.To(), value: value, data: tx.Data()}

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		header := newCall("eth_getBlockByNumber", "latest", false)
		if err := node.do(ctx, header); err != nil {
			return err
		}

		var quote networkQuote
		if err := header.decode(node, &quote.latest); err != nil {
			return err
		}

		shown, err := d.readShown(ctx, node, quote)
		if err != nil {
			return err
		}

		least, err := d.leastGas(ctx, node, msg)
		fits = least <= tx.Gas() && tx.Gas() <= d.mostGas(shown)

		return err
	})

	return fits && err == nil, err
}

// leastGas returns a lower bound of the gas that a call uses: the lowest estimate of the nodes that answer,
// less the margin of estimates. It returns 0 where a node refuses to estimate it: the sender may have made
// the payment already.
func (d *driver) leastGas(ctx context.Context, node *endpoint, msg transferMsg) (least uint64, err error) {
	estimate := func(ctx context.Context, node *endpoint) (uint64, error) {
		call := newCall("eth_estimateGas", msg.callArgs())
		if err := node.do(ctx, call); err != nil || call.refusal() != nil {
			return 0, err
		}

		gas, err := call.gas(node)

		return gas - gas/estimateMargin, err
	}

	if least, err = estimate(ctx, node); err != nil || len(d.nodes.Nodes) == 1 {
		return least, err
	}

	brief, stop := context.WithTimeout(ctx, secondOpinionWithin)
	defer stop()

	_ = d.nodes.AskBeside(brief, node, 0, func(ctx context.Context, other *endpoint) (bool, error) {
		second, err := estimate(ctx, other)
		if err == nil {
			least = min(least, second)
		}

		return err == nil, err
	})

	return least, ctx.Err()
}

// RanOutOfGas reports whether a transaction in a block was reverted after it had used nearly all of its gas:
// a call inside it leaves a sixty-fourth (EIP-150). The receipt is one that the block's receipts root holds.
func (d *driver) RanOutOfGas(ctx context.Context, signed chain.Signed) (ranOut bool, err error) {
	hash, err := parseHash(signed.TxHash)
	if err != nil {
		return false, err
	}

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		lookup, err := d.lookUpTx(ctx, node, hash)
		if err != nil {
			return err
		}

		if lookup.receipt == nil {
			return fault.New(
				fault.NotFound, "transaction_unknown", "network %s has no block with transaction %s",
				d.network.Slug, hash.Hex(),
			)
		}

		tx, _, err := d.decodeSigned(signed.Raw)
		if err != nil {
			return err
		}

		used := uint64(*lookup.receipt.GasUsed)
		ranOut = *lookup.receipt.Status == 0 && used >= tx.Gas()-tx.Gas()/16

		return nil
	})

	return ranOut && err == nil, err
}
