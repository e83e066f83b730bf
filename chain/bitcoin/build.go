package bitcoin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Build makes a transaction at current fees. Unsigned.Raw is a PSBT (BIP-174) with the output that each
// input spends, so that a signer outside can read it; MaxFee is the fee itself, to the satoshi. Change goes
// to Order.From, after the ordered outputs, and is not among Unsigned.Outputs.
//
// The coins are chosen from Order.Coins; those that the node calls spent, or that are block rewards not yet
// spendable, are passed over. With SubtractFee they must add up to the outputs, or leave change for From;
// nothing else at the address is touched.
//
// A replacement spends every coin of what it replaces, pays at least its fee (with that of whatever spends
// it in turn) plus the relay fee for itself, at a higher rate, and takes no other unconfirmed coin (BIP-125).
//
// With Order.Lift the transaction spends that waiting coin first, takes no other unconfirmed one,
// and pays what its ancestors lack, too (lift.go). When they lack nothing it is fault.NotFound
// (lift_over).
//
// The lock time is the newest height: an older block cannot be made anew to take the fee, and Status knows
// from where on to look for the transaction.
func (d *Driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	target, err := d.targetOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	coins, required, err := d.candidates(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var unsigned chain.Unsigned

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		parent, err := e.parentEntry(ctx, order, required)
		if err != nil {
			return err
		}

		selected, err := d.fundOrder(ctx, e, order, target, coins, required, parent)
		if err != nil {
			return err
		}

		var height uint32
		if err := e.call(ctx, &height, "getblockcount"); err != nil {
			return err
		}

		unsigned, err = d.buildPSBT(order, target, selected, height)
		unsigned.RestsOn = parent.ancestorSpends

		return err
	})
	if err != nil {
		return chain.Unsigned{}, err
	}

	return unsigned, nil
}

// maxOutputs is how many destinations one transaction pays: as many as a release takes deposits.
// With their coins they stay far below what nodes relay.
const maxOutputs = 50

// MaxOutputs returns how many destinations one transaction pays.
func (d *Driver) MaxOutputs() int { return maxOutputs }

// targetOf reads what an order pays.
func (d *Driver) targetOf(order chain.Order) (coinTarget, error) {
	target := coinTarget{subtractFee: order.SubtractFee}
	if len(order.Outputs) == 0 {
		return target, fault.New(fault.Invalid, "order_invalid", "the order pays nothing")
	}

	if len(order.Outputs) > maxOutputs {
		return target, fault.New(
			fault.Unsupported, "outputs_unsupported",
			"the order pays %d destinations, one transaction pays at most %d",
			len(order.Outputs), maxOutputs,
		)
	}

	for i, o := range order.Outputs {
		if o.AssetID != d.native.ID {
			return target, fault.New(
				fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
				d.network.Slug, o.AssetID,
			)
		}

		_, script, err := d.parse(string(o.To))
		if err != nil {
			return target, fault.Wrap(
				err, fault.Invalid, "destination_not_payable", "the destination cannot be paid",
			)
		}

		amount, ok := satoshi(o.Amount)
		if !ok || amount > maxSatoshi-target.total {
			return target, fault.New(
				fault.Invalid, "destination_not_payable",
				"%s satoshi for %s is no amount that exists",
				o.Amount, o.To,
			)
		}

		last := i == len(order.Outputs)-1
		if least := dustLimit(script); amount < least && !(order.SubtractFee && last) {
			return target, fault.New(
				fault.Invalid, "destination_not_payable",
				"%d satoshi for %s is dust, which the network does not relay: pay at least %d",
				amount, o.To, least,
			)
		}

		target.total += amount
		target.outputs = append(target.outputs, wire.NewTxOut(amount, script))
	}

	_, script, err := d.parse(string(order.From.Address))
	if err != nil || !spendableScript(script) {
		return target, fault.New(
			fault.Invalid, "order_invalid",
			"the order is from %q, which is no P2WPKH or P2TR address of this network",
			truncate(string(order.From.Address)),
		)
	}

	target.changeScript = script

	return target, nil
}

// spendableScript says that this package can sign for the outputs of a script.
func spendableScript(script []byte) bool {
	return txscript.IsPayToWitnessPubKeyHash(script) || txscript.IsPayToTaproot(script)
}

// candidates reads the coins of an order: those that may be chosen, and those that must be spent. A
// coin at an address that this package cannot sign for is passed over.
func (d *Driver) candidates(order chain.Order) (coins, required []candidate, err error) {
	var must []chain.Outpoint

	offered := order.Coins
	if order.Lift != nil {
		must, offered = append(must, order.Lift.Outpoint), append([]chain.Coin{*order.Lift}, offered...)
	}

	if order.Replaces != nil {
		if len(order.Replaces.Inputs) == 0 {
			return nil, nil, fault.New(
				fault.Invalid, "replacement_invalid",
				"transaction %s names no coins that a replacement could share",
				truncate(order.Replaces.TxHash),
			)
		}

		for _, in := range order.Replaces.Inputs {
			if !slices.Contains(must, in) {
				must = append(must, in)
			}
		}
	}

	seen := map[chain.Outpoint]bool{}

	for _, utxo := range offered {
		_, script, err := d.parse(string(utxo.Owner.Address))

		value, ok := satoshi(utxo.Amount)
		if err != nil || !ok || !spendableScript(script) || seen[utxo.Outpoint] {
			continue
		}

		if _, err := chainhash.NewHashFromStr(utxo.Outpoint.TxHash); err != nil {
			continue
		}

		seen[utxo.Outpoint] = true

		coin := candidate{Coin: utxo, value: value, script: script, taproot: txscript.IsPayToTaproot(script)}
		switch {
		case slices.Contains(must, utxo.Outpoint):
			required = append(required, coin)
		case order.Replaces == nil && order.Lift == nil || utxo.Height > 0:
			coins = append(coins, coin)
		}
	}

	if len(required) != len(must) {
		return nil, nil, fault.New(
			fault.Invalid, "replacement_invalid",
			"the order has %d of the %d coins that it has to spend",
			len(required), len(must),
		)
	}

	return coins, required, nil
}

// fundOrder chooses coins that the node knows to be unspent, at a fee that the order allows.
func (d *Driver) fundOrder(
	ctx context.Context,
	e *endpoint,
	order chain.Order,
	target coinTarget,
	coins, required []candidate,
	parent mempoolEntry,
) (selection, error) {
	rates, err := d.readFeeRates(ctx, e)
	if err != nil {
		return selection{}, err
	}

	policies := []feePolicy{{rate: rates.estimate}}
	if order.Lift != nil {
		if err := parent.checkBump(order, rates.estimate); err != nil {
			return selection{}, err
		}

		policies[0].parentFee, policies[0].parentRate = parent.bumpFee(rates.estimate), rates.estimate
	}

	if order.Replaces != nil {
		replacement, err := e.replacementPolicy(ctx, *order.Replaces, rates)
		if err != nil {
			return selection{}, err
		}

		bump := replacement
		bump.rate, bump.parentFee, bump.parentRate = max(rates.estimate, replacement.rate), policies[0].parentFee, policies[0].parentRate
		policies = []feePolicy{bump, replacement}
	}

	unchecked := true
	for unchecked {
		var selected selection
		for _, policy := range policies {
			if selected, err = selectCoins(target, policy, coins, required); err != nil {
				return selection{}, insufficientFunds(order, err)
			}

			if satoshiAmount(selected.fee).Cmp(order.MaxFee) <= 0 {
				break
			}
		}

		if order.MaxFee.Less(satoshiAmount(selected.fee)) {
			return selection{}, fault.New(
				fault.Limited, "fee_above_maximum",
				"the transaction costs %d satoshi now, more than the %s that it may cost",
				selected.fee, order.MaxFee,
			)
		}

		gone, err := e.unspendable(ctx, selected.coins, required)
		if err != nil {
			return selection{}, err
		}

		if len(gone) == 0 {
			return selected, nil
		}

		for _, o := range gone {
			if slices.ContainsFunc(required, func(coin candidate) bool { return coin.Outpoint == o }) {
				return selection{}, fault.New(
					fault.Unavailable,
					"coin_spent",
					"coin %s:%d, which the replacement has to spend, is spent in a block: look the earlier attempts up",
					o.TxHash,
					o.Vout,
				)
			}

			d.log.WarnContext(
				ctx, "a coin on record cannot be spent",
				"network", d.network.Slug, "tx_hash", o.TxHash, "vout", o.Vout,
			)
		}

		coins = slices.DeleteFunc(
			slices.Clone(coins),
			func(coin candidate) bool { return slices.Contains(gone, coin.Outpoint) },
		)
	}

	return selection{}, err
}

func insufficientFunds(order chain.Order, err error) error {
	return fault.Wrap(
		err, fault.State, "insufficient_funds", "wallet %s cannot pay for the transaction",
		order.From.Address,
	)
}

// coinbaseMaturity is how many confirmations a block reward needs before it can be spent.
const coinbaseMaturity = 100

// unspendable returns those of the coins that the node does not have as they are on record, or that cannot
// be spent yet. A waiting transaction of ours may already spend a confirmed coin: that is for
// chain/send to know. Unconfirmed coins of what is replaced are spent in the pool, and not asked
// for.
func (e *endpoint) unspendable(ctx context.Context, coins, required []candidate) ([]chain.Outpoint, error) {
	var (
		asked []candidate
		calls []*rpcCall
	)

	for _, coin := range coins {
		if coin.Height == 0 &&
			slices.ContainsFunc(required, func(r candidate) bool { return r.Outpoint == coin.Outpoint }) {
			continue
		}

		asked = append(asked, coin)
		calls = append(calls, newCall("gettxout", coin.Outpoint.TxHash, coin.Outpoint.Vout, coin.Height == 0))
	}

	if err := e.batchCall(ctx, calls...); err != nil {
		return nil, err
	}

	var out []chain.Outpoint

	for i, coin := range asked {
		var o struct {
			Confirmations int64       `json:"confirmations"`
			Value         json.Number `json:"value"`
			Coinbase      bool        `json:"coinbase"`
			Script        struct {
				Hex string `json:"hex"`
			} `json:"scriptPubKey"`
		}
		if !calls[i].isNull() {
			if err := calls[i].decode(e, &o); err != nil {
				return nil, err
			}

			value, err := satoshiOf(o.Value.String())
			if err == nil && value == coin.value && o.Script.Hex == fmt.Sprintf("%x", coin.script) &&
				(!o.Coinbase || o.Confirmations >= coinbaseMaturity) {
				continue
			}
		}

		out = append(out, coin.Outpoint)
	}

	return out, nil
}

// replacementPolicy returns the least price at which the pool takes a replacement: more than all that it
// puts out of the pool paid together, by the relay fee for itself, and a higher rate. Source:
// Bitcoin Core, doc/policy/mempool-replacements.md.
func (e *endpoint) replacementPolicy(ctx context.Context, old chain.Signed, rates feeRates) (feePolicy, error) {
	tx, err := signedTx(old)
	if err != nil {
		return feePolicy{}, err
	}

	paid, ok := satoshi(old.MaxFee)
	if !ok {
		return feePolicy{}, fault.New(
			fault.Invalid, "replacement_invalid", "transaction %s paid no fee", old.TxHash,
		)
	}

	weight := int64(3*tx.SerializeSizeStripped() + tx.SerializeSize())
	policy := feePolicy{rate: max(rates.minRelay, paid*4000/weight+1), replacedFee: paid, incrementalRate: rates.incrementalRelay}

	var entry struct {
		Fees struct {
			Descendant json.Number `json:"descendant"`
		} `json:"fees"`
	}

	err = e.call(ctx, &entry, "getmempoolentry", old.TxHash)
	if failover.RefusedWith(err, codeNotFound, codeNoMethod, codeMisc) {
		return policy, nil // it is not in the pool any more, or the node does not say, as btcd
	}

	if err != nil {
		return feePolicy{}, err
	}

	all, err := satoshiOf(entry.Fees.Descendant.String())
	if err != nil {
		return feePolicy{}, e.Garbled("its fees of transaction %s are no amount", old.TxHash)
	}

	policy.replacedFee = max(policy.replacedFee, all)

	return policy, nil
}

// buildPSBT puts the transaction together.
func (d *Driver) buildPSBT(order chain.Order, target coinTarget, selected selection, height uint32) (chain.Unsigned, error) {
	unsigned := chain.Unsigned{MaxFee: satoshiAmount(selected.fee), Outputs: slices.Clone(order.Outputs)}

	outputs := make([]*wire.TxOut, 0, len(target.outputs)+1)
	for _, output := range target.outputs {
		outputs = append(outputs, wire.NewTxOut(output.Value, output.PkScript))
	}

	if order.SubtractFee {
		last := outputs[len(outputs)-1]
		if last.Value -= selected.fee; last.Value < dustLimit(last.PkScript) {
			return chain.Unsigned{}, fault.New(
				fault.State, "insufficient_funds",
				"%s satoshi less the network fee of %d is nothing that can be sent",
				unsigned.Outputs[len(outputs)-1].Amount, selected.fee,
			)
		}

		unsigned.Outputs[len(outputs)-1].Amount = satoshiAmount(last.Value)
	}

	if selected.change > 0 {
		outputs = append(outputs, wire.NewTxOut(selected.change, target.changeScript))
	}

	tx := wire.NewMsgTx(2)
	tx.LockTime, tx.TxOut = height, outputs

	for _, coin := range selected.coins {
		hash, err := chainhash.NewHashFromStr(coin.Outpoint.TxHash)
		if err != nil {
			return chain.Unsigned{}, malformed(err)
		}

		tx.AddTxIn(
			&wire.TxIn{
				PreviousOutPoint: wire.OutPoint{Hash: *hash, Index: coin.Outpoint.Vout},
				Sequence:         replaceable,
			},
		)
		unsigned.Inputs = append(unsigned.Inputs, coin.Outpoint)
	}

	packet, err := psbt.NewFromUnsignedTx(tx)
	if err != nil {
		return chain.Unsigned{}, malformed(err)
	}

	for i, coin := range selected.coins {
		// No sighash type: without one a signer takes ALL for P2WPKH and DEFAULT for P2TR, as it must.
		packet.Inputs[i].WitnessUtxo = wire.NewTxOut(coin.value, coin.script)
	}

	digests, err := sighashes(packet)
	if err != nil {
		return chain.Unsigned{}, err
	}

	for i, coin := range selected.coins {
		unsigned.Payloads = append(unsigned.Payloads, chain.Payload{Key: coin.Owner.Key, Data: digests[i], Taproot: coin.taproot})
	}

	var raw bytes.Buffer
	if err := packet.Serialize(&raw); err != nil {
		return chain.Unsigned{}, malformed(err)
	}

	unsigned.Raw = raw.Bytes()

	return unsigned, nil
}

var errNoOutput = errors.New("an input does not say which output it spends")

func malformed(err error) error {
	return fault.Wrap(
		err, fault.Invalid, "transaction_malformed",
		"the bytes are no transaction that this driver built",
	)
}
