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
	n, err := d.needOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	coins, required, err := d.candidates(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var u chain.Unsigned

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		f, err := e.familyOf(ctx, order, required)
		if err != nil {
			return err
		}

		s, err := d.afford(ctx, e, order, n, coins, required, f)
		if err != nil {
			return err
		}

		var height uint32
		if err := e.one(ctx, &height, "getblockcount"); err != nil {
			return err
		}

		u, err = d.unsigned(order, n, s, height)
		u.RestsOn = f.rests

		return err
	})
	if err != nil {
		return chain.Unsigned{}, err
	}

	return u, nil
}

// maxOutputs is how many destinations one transaction pays: as many as a release takes deposits.
// With their coins they stay far below what nodes relay.
const maxOutputs = 50

// MaxOutputs returns how many destinations one transaction pays.
func (d *Driver) MaxOutputs() int { return maxOutputs }

// needOf reads what an order pays.
func (d *Driver) needOf(order chain.Order) (need, error) {
	n := need{subtract: order.SubtractFee}
	if len(order.Outputs) == 0 {
		return n, fault.New(fault.Invalid, "order_invalid", "the order pays nothing")
	}

	if len(order.Outputs) > maxOutputs {
		return n, fault.New(
			fault.Unsupported, "outputs_unsupported",
			"the order pays %d destinations, one transaction pays at most %d",
			len(order.Outputs), maxOutputs,
		)
	}

	for i, o := range order.Outputs {
		if o.AssetID != d.native.ID {
			return n, fault.New(
				fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
				d.network.Slug, o.AssetID,
			)
		}

		_, script, err := d.parse(string(o.To))
		if err != nil {
			return n, fault.Wrap(
				err, fault.Invalid, "destination_not_payable", "the destination cannot be paid",
			)
		}

		amount, ok := satoshi(o.Amount)
		if !ok || amount > maxSatoshi-n.payments {
			return n, fault.New(
				fault.Invalid, "destination_not_payable",
				"%s satoshi for %s is no amount that exists",
				o.Amount, o.To,
			)
		}

		last := i == len(order.Outputs)-1
		if least := dustLimit(script); amount < least && !(order.SubtractFee && last) {
			return n, fault.New(
				fault.Invalid, "destination_not_payable",
				"%d satoshi for %s is dust, which the network does not relay: pay at least %d",
				amount, o.To, least,
			)
		}

		n.payments += amount
		n.outputs = append(n.outputs, wire.NewTxOut(amount, script))
	}

	_, script, err := d.parse(string(order.From.Address))
	if err != nil || !spendableScript(script) {
		return n, fault.New(
			fault.Invalid, "order_invalid",
			"the order is from %q, which is no P2WPKH or P2TR address of this network",
			clip(string(order.From.Address)),
		)
	}

	n.change = script

	return n, nil
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
				clip(order.Replaces.TxHash),
			)
		}

		for _, in := range order.Replaces.Inputs {
			if !slices.Contains(must, in) {
				must = append(must, in)
			}
		}
	}

	seen := map[chain.Outpoint]bool{}

	for _, coin := range offered {
		_, script, err := d.parse(string(coin.Owner.Address))

		value, ok := satoshi(coin.Amount)
		if err != nil || !ok || !spendableScript(script) || seen[coin.Outpoint] {
			continue
		}

		if _, err := chainhash.NewHashFromStr(coin.Outpoint.TxHash); err != nil {
			continue
		}

		seen[coin.Outpoint] = true

		c := candidate{Coin: coin, value: value, script: script, taproot: txscript.IsPayToTaproot(script)}
		switch {
		case slices.Contains(must, coin.Outpoint):
			required = append(required, c)
		case order.Replaces == nil && order.Lift == nil || coin.Height > 0:
			coins = append(coins, c)
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

// afford chooses coins that the node knows to be unspent, at a fee that the order allows.
func (d *Driver) afford(
	ctx context.Context,
	e *endpoint,
	order chain.Order,
	n need,
	coins, required []candidate,
	f family,
) (selection, error) {
	r, err := d.rates(ctx, e)
	if err != nil {
		return selection{}, err
	}

	prices := []price{{rate: r.current}}
	if order.Lift != nil {
		if err := f.wants(order, r.current); err != nil {
			return selection{}, err
		}

		prices[0].lift, prices[0].liftRate = f.lacks(r.current), r.current
	}

	if order.Replaces != nil {
		least, err := e.displacing(ctx, *order.Replaces, r)
		if err != nil {
			return selection{}, err
		}

		now := least
		now.rate, now.lift, now.liftRate = max(r.current, least.rate), prices[0].lift, prices[0].liftRate
		prices = []price{now, least}
	}

	unchecked := true
	for unchecked {
		var s selection
		for _, p := range prices {
			if s, err = choose(n, p, coins, required); err != nil {
				return selection{}, shortage(order, err)
			}

			if units(s.fee).Cmp(order.MaxFee) <= 0 {
				break
			}
		}

		if order.MaxFee.Less(units(s.fee)) {
			return selection{}, fault.New(
				fault.Limited, "fee_above_maximum",
				"the transaction costs %d satoshi now, more than the %s that it may cost",
				s.fee, order.MaxFee,
			)
		}

		gone, err := e.gone(ctx, s.coins, required)
		if err != nil {
			return selection{}, err
		}

		if len(gone) == 0 {
			return s, nil
		}

		for _, o := range gone {
			if slices.ContainsFunc(required, func(c candidate) bool { return c.Outpoint == o }) {
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
			func(c candidate) bool { return slices.Contains(gone, c.Outpoint) },
		)
	}

	return selection{}, err
}

func shortage(order chain.Order, err error) error {
	return fault.Wrap(
		err, fault.State, "insufficient_funds", "wallet %s cannot pay for the transaction",
		order.From.Address,
	)
}

// coinbaseMaturity is how many confirmations a block reward needs before it can be spent.
const coinbaseMaturity = 100

// gone returns those of the coins that the node does not have as they are on record, or that cannot
// be spent yet. A waiting transaction of ours may already spend a confirmed coin: that is for
// chain/send to know. Unconfirmed coins of what is replaced are spent in the pool, and not asked
// for.
func (e *endpoint) gone(ctx context.Context, coins, required []candidate) ([]chain.Outpoint, error) {
	var (
		asked []candidate
		calls []*call
	)

	for _, c := range coins {
		if c.Height == 0 &&
			slices.ContainsFunc(required, func(r candidate) bool { return r.Outpoint == c.Outpoint }) {
			continue
		}

		asked = append(asked, c)
		calls = append(calls, newCall("gettxout", c.Outpoint.TxHash, c.Outpoint.Vout, c.Height == 0))
	}

	if err := e.do(ctx, calls...); err != nil {
		return nil, err
	}

	var out []chain.Outpoint

	for i, c := range asked {
		var o struct {
			Confirmations int64       `json:"confirmations"`
			Value         json.Number `json:"value"`
			Coinbase      bool        `json:"coinbase"`
			Script        struct {
				Hex string `json:"hex"`
			} `json:"scriptPubKey"`
		}
		if !calls[i].null() {
			if err := calls[i].decode(e, &o); err != nil {
				return nil, err
			}

			value, err := satoshiOf(o.Value.String())
			if err == nil && value == c.value && o.Script.Hex == fmt.Sprintf("%x", c.script) &&
				(!o.Coinbase || o.Confirmations >= coinbaseMaturity) {
				continue
			}
		}

		out = append(out, c.Outpoint)
	}

	return out, nil
}

// displacing returns the least price at which the pool takes a replacement: more than all that it
// puts out of the pool paid together, by the relay fee for itself, and a higher rate. Source:
// Bitcoin Core, doc/policy/mempool-replacements.md.
func (e *endpoint) displacing(ctx context.Context, old chain.Signed, r rates) (price, error) {
	tx, err := signedTx(old)
	if err != nil {
		return price{}, err
	}

	paid, ok := satoshi(old.MaxFee)
	if !ok {
		return price{}, fault.New(
			fault.Invalid, "replacement_invalid", "transaction %s paid no fee", old.TxHash,
		)
	}

	weight := int64(3*tx.SerializeSizeStripped() + tx.SerializeSize())
	p := price{rate: max(r.least, paid*4000/weight+1), base: paid, increment: r.increment}

	var entry struct {
		Fees struct {
			Descendant json.Number `json:"descendant"`
		} `json:"fees"`
	}

	err = e.one(ctx, &entry, "getmempoolentry", old.TxHash)
	if failover.RefusedWith(err, codeNotFound, codeNoMethod, codeMisc) {
		return p, nil // it is not in the pool any more, or the node does not say, as btcd
	}

	if err != nil {
		return price{}, err
	}

	all, err := satoshiOf(entry.Fees.Descendant.String())
	if err != nil {
		return price{}, e.Garbled("its fees of transaction %s are no amount", old.TxHash)
	}

	p.base = max(p.base, all)

	return p, nil
}

// unsigned puts the transaction together.
func (d *Driver) unsigned(order chain.Order, n need, s selection, height uint32) (chain.Unsigned, error) {
	u := chain.Unsigned{MaxFee: units(s.fee), Outputs: slices.Clone(order.Outputs)}

	outputs := make([]*wire.TxOut, 0, len(n.outputs)+1)
	for _, o := range n.outputs {
		outputs = append(outputs, wire.NewTxOut(o.Value, o.PkScript))
	}

	if order.SubtractFee {
		last := outputs[len(outputs)-1]
		if last.Value -= s.fee; last.Value < dustLimit(last.PkScript) {
			return chain.Unsigned{}, fault.New(
				fault.State, "insufficient_funds",
				"%s satoshi less the network fee of %d is nothing that can be sent",
				u.Outputs[len(outputs)-1].Amount, s.fee,
			)
		}

		u.Outputs[len(outputs)-1].Amount = units(last.Value)
	}

	if s.change > 0 {
		outputs = append(outputs, wire.NewTxOut(s.change, n.change))
	}

	tx := wire.NewMsgTx(2)
	tx.LockTime, tx.TxOut = height, outputs

	for _, c := range s.coins {
		hash, err := chainhash.NewHashFromStr(c.Outpoint.TxHash)
		if err != nil {
			return chain.Unsigned{}, malformed(err)
		}

		tx.AddTxIn(
			&wire.TxIn{
				PreviousOutPoint: wire.OutPoint{Hash: *hash, Index: c.Outpoint.Vout},
				Sequence:         replaceable,
			},
		)
		u.Inputs = append(u.Inputs, c.Outpoint)
	}

	packet, err := psbt.NewFromUnsignedTx(tx)
	if err != nil {
		return chain.Unsigned{}, malformed(err)
	}

	for i, c := range s.coins {
		// No sighash type: without one a signer takes ALL for P2WPKH and DEFAULT for P2TR, as it must.
		packet.Inputs[i].WitnessUtxo = wire.NewTxOut(c.value, c.script)
	}

	digests, err := digestsOf(packet)
	if err != nil {
		return chain.Unsigned{}, err
	}

	for i, c := range s.coins {
		u.Payloads = append(u.Payloads, chain.Payload{Key: c.Owner.Key, Data: digests[i], Taproot: c.taproot})
	}

	var raw bytes.Buffer
	if err := packet.Serialize(&raw); err != nil {
		return chain.Unsigned{}, malformed(err)
	}

	u.Raw = raw.Bytes()

	return u, nil
}

var errNoOutput = errors.New("an input does not say which output it spends")

func malformed(err error) error {
	return fault.Wrap(
		err, fault.Invalid, "transaction_malformed",
		"the bytes are no transaction that this driver built",
	)
}
