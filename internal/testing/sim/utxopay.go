package sim

// Controls that fund addresses and send transactions of third parties.

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
)

// payerChange is the change of a third party's transaction, in base units.
const payerChange = 100_000

// UTXOPayment is a transaction of a third party.
type UTXOPayment struct {
	// Outputs are what it pays, in order; change follows them. Amounts may be dust, and 0.
	Outputs []chain.Output

	// FeeRate is its fee rate in base units per 1000 vB. Defaults to the rate that the driver estimates.
	FeeRate uint64

	// Parent is the hash of a waiting transaction of a third party, whose change it also spends. Defaults
	// to none.
	Parent string
}

// Fund mines a block with one transaction that pays an address, and returns the coin's outpoint. A fork
// orphans it like any other.
func (u *UTXO) Fund(to chain.Address, amount chain.Amount) chain.Outpoint {
	owner, units := mustAccount(to), mustUnits(amount)

	u.mu.Lock()
	defer u.mu.Unlock()

	tx := &utxoTx{network: u.networkID, outputs: []utxoPayment{{to: owner, amount: units}}}
	entry := u.fundedEntry(tx, feeAt(u.feeRate, vsizeOf(utxoWeight(1, 1))))
	u.appendBlock(u.now(), []*utxoEntry{entry})

	return chain.Outpoint{TxHash: entry.hash}
}

// Pay puts a payment by a new, funded third party into the pool and returns its transaction hash. It panics
// when the pool does not take it.
func (u *UTXO) Pay(to chain.Address, amount chain.Amount) string {
	hash, err := u.Send(UTXOPayment{Outputs: []chain.Output{{To: to, AssetID: u.native.ID, Amount: amount}}})
	if err != nil {
		panic("sim: " + err.Error())
	}

	return hash
}

// Send puts a transaction of a third party into the pool and returns its hash. It fails when the pool does
// not take it, such as for a rate below the floor or too many unconfirmed ancestors; see Broadcast.
func (u *UTXO) Send(p UTXOPayment) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()

	tx := &utxoTx{network: u.networkID}
	for _, output := range p.Outputs {
		tx.outputs = append(
			tx.outputs,
			utxoPayment{to: mustAccount(output.To), amount: mustUnits(output.Amount)},
		)
	}

	tx.outputs = append(tx.outputs, utxoPayment{to: u.newAccount(), amount: payerChange})

	if p.Parent != "" {
		parent := u.pool.byHash[p.Parent]
		if parent == nil {
			panic(fmt.Sprintf("sim: transaction %s does not wait in the pool", p.Parent))
		}

		vout := uint32(len(parent.tx.outputs) - 1)
		tx.inputs = append(tx.inputs, chain.Outpoint{TxHash: p.Parent, Vout: vout})
	}

	if p.FeeRate == 0 {
		p.FeeRate = max(u.feeRate, u.floor())
	}

	entry := u.fundedEntry(tx, feeAt(p.FeeRate, vsizeOf(utxoWeight(len(tx.inputs)+1, len(tx.outputs)))))

	return entry.hash, u.accept(entry)
}

// fundedEntry adds an input of a third party to a transaction, so that its fee is exact.
func (u *UTXO) fundedEntry(tx *utxoTx, fee uint64) *utxoEntry {
	paid, _ := tx.paid()

	var have uint64

	for _, input := range tx.inputs {
		output, _ := u.spendable(input, u.tip())
		have += output.amount
	}

	// A coin that is not needed is spent for the change of a base unit, so that hashes differ.
	coin := uint64(1)
	if paid+fee > have {
		coin = paid + fee - have
	}

	tx.inputs = append(tx.inputs, u.mint(coin))
	tx.signatures = make([][signatureSize]byte, len(tx.inputs))

	return &utxoEntry{tx: tx, hash: tx.hash(), fee: have + coin - paid, vsize: tx.vsize()}
}

// mint makes a coin of a new third party, confirmed since genesis. No block shows its transaction.
func (u *UTXO) mint(amount uint64) chain.Outpoint {
	u.mintedCoins++

	preimage := append([]byte("sim minted coin"), u.networkID[:]...)
	preimage = binary.BigEndian.AppendUint64(preimage, u.seed)
	preimage = binary.BigEndian.AppendUint64(preimage, u.mintedCoins)
	hash := sha256.Sum256(preimage)

	at := chain.Outpoint{TxHash: hex.EncodeToString(hash[:])}
	u.outputs[at] = &utxoOutput{utxoPayment: utxoPayment{to: u.newAccount(), amount: amount}}

	return at
}

// DoubleSpend replaces a waiting transaction of any sender, with its descendants, by one that spends the
// same inputs to other addresses and pays more. It returns the hash of the replacement.
func (u *UTXO) DoubleSpend(hash string) string {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.displace(hash, u.conflicting)
}

// Replace replaces a waiting transaction of any sender, with its descendants, by one that pays the same
// outputs and a higher fee (RBF). It returns the hash of the replacement.
func (u *UTXO) Replace(hash string) string {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.displace(hash, func(old *utxoEntry) *utxoEntry {
		tx := *old.tx
		tx.inputs = append([]chain.Outpoint(nil), old.tx.inputs...)

		return u.fundedEntry(&tx, u.displacingFee(old))
	})
}

// displace puts the replacement of a waiting transaction into the pool.
func (u *UTXO) displace(hash string, replacement func(*utxoEntry) *utxoEntry) string {
	old := u.pool.byHash[hash]
	if old == nil {
		panic(fmt.Sprintf("sim: transaction %s does not wait in the pool", hash))
	}

	entry := replacement(old)
	if err := u.accept(entry); err != nil {
		panic("sim: " + err.Error())
	}

	return entry.hash
}

// conflicting returns a transaction that spends the inputs of another to a third party, and pays more.
func (u *UTXO) conflicting(old *utxoEntry) *utxoEntry {
	var sum uint64

	for _, input := range old.tx.inputs {
		output := u.outputs[input]
		if output != nil {
			sum += output.amount
		} else if parent := u.pool.byHash[input.TxHash]; parent != nil {
			sum += parent.tx.outputs[input.Vout].amount
		}
	}

	tx := &utxoTx{
		network: u.networkID,
		inputs:  append([]chain.Outpoint(nil), old.tx.inputs...),
		outputs: []utxoPayment{{to: u.newAccount(), amount: sum}},
	}

	return u.fundedEntry(tx, u.displacingFee(old))
}

// displacingFee returns a fee that replaces a transaction by one with one more input.
func (u *UTXO) displacingFee(old *utxoEntry) uint64 {
	fees, _ := sumOf(u.pool.descendants(old))
	size := vsizeOf(utxoWeight(len(old.tx.inputs)+1, len(old.tx.outputs)+1))
	higher := old.fee*size/old.vsize + 1

	return max(fees, higher) + feeAt(max(u.config.RelayRate, u.floor()), size)
}

// Drop removes a transaction with its descendants from the pool and reports whether it was there.
func (u *UTXO) Drop(hash string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()

	entry := u.pool.byHash[hash]
	if entry != nil {
		u.pool.removeAll(entry)
	}

	return entry != nil
}

// mustUnits returns an amount in base units. It panics for one that cannot exist.
func mustUnits(amount chain.Amount) uint64 {
	units, ok := unitsOf(amount)
	if !ok {
		panic(fmt.Sprintf("sim: there are no %s base units", amount))
	}

	return units
}

// unitsOf returns an amount in base units; ok is false for one that cannot exist.
func unitsOf(amount chain.Amount) (units uint64, ok bool) {
	units, ok = amount.Uint64()
	return units, ok && units <= maxUTXOUnits
}
