package main

// What java-tron checks before it takes a transaction, and what including one costs and does.
// Source: java-tron, Manager.processTransaction, BandwidthProcessor, TransferActuator, VMActuator,
// ReceiptCapsule.payEnergyBill, Wallet.broadcastTransaction.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"
)

// refusal is java-tron's no to a broadcast: code and message of api.Return.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return r.code + ": " + r.message }

// info is what the inclusion of a transaction did.
type info struct {
	fee       int64 // everything that was burnt
	netUsage  int64
	netFee    int64
	energyFee int64
	energy    int64 // staked energy that was used
	total     int64 // energy in all
	outcome   *outcome
}

// refuse makes the checks that need no execution: reference block, expiration, duplicate, signature.
func (n *node) refuse(t *transaction, broadcast bool) *refusal {
	if !n.knowsReference(t) {
		return &refusal{"TAPOS_ERROR", "Tapos check error."}
	}

	headTime := n.head().timestamp
	if t.expiration <= headTime || t.expiration > headTime+maxLifetime {
		return &refusal{"TRANSACTION_EXPIRATION_ERROR", "Transaction expired"}
	}

	if b, _ := n.included(t.id); b != nil || (broadcast && n.waiting(t.id) != nil) {
		return &refusal{"DUP_TRANSACTION_ERROR", "Dup transaction."}
	}

	if signer, err := recoverSigner(t); err != nil {
		return &refusal{"SIGERROR", "Validate signature error: " + err.Error()}
	} else if signer != t.owner || t.permission != n.head().state.accounts[t.owner].permission {
		return &refusal{
			"SIGERROR",
			"Validate signature error: " + hexBytes(
				t.signature,
			) + " is signed by " + hexBytes(
				prefixedBytes(signer),
			) + " but it is not contained of permission.",
		}
	}

	return nil
}

// knowsReference looks for the newest block with the 2 low bytes of the height among the last
// 65,536, and compares the middle of its id. Source: Manager.validateTapos.
func (n *node) knowsReference(t *transaction) bool {
	if len(t.refBytes) != 2 || len(t.refHash) != 8 {
		return false
	}

	head := n.head().height

	height := head&^0xffff | uint64(binary.BigEndian.Uint16(t.refBytes))
	if height > head {
		if height < 1<<16 {
			return false
		}

		height -= 1 << 16
	}

	id := n.blocks[height].id

	return bytes.Equal(id[8:16], t.refHash)
}

func recoverSigner(t *transaction) (address, error) {
	if len(t.signature) != 65 {
		return address{}, fmt.Errorf("signature size is %d", len(t.signature))
	}

	rsv := bytes.Clone(t.signature)
	if rsv[64] >= 27 {
		rsv[64] -= 27
	}
	// Stricter than java-tron: only signatures in the lower half, which is what wallets make.
	if rsv[64] > 1 ||
		!crypto.ValidateSignatureValues(
			rsv[64], new(big.Int).SetBytes(rsv[:32]), new(big.Int).SetBytes(rsv[32:64]), true,
		) {
		return address{}, fmt.Errorf("signature values are out of range")
	}

	pub, err := crypto.SigToPub(t.id[:], rsv)
	if err != nil {
		return address{}, err
	}

	return crypto.PubkeyToAddress(*pub), nil
}

// execute charges and does what a transaction asks for, in the workspace. A refusal leaves the
// workspace as it was.
func (n *node) execute(ws *workspace, t *transaction, height uint64, timestamp int64) (*info, *refusal) {
	undo := ws.undo()
	done := new(info)

	refused := n.charge(ws, t, done)
	if refused == nil {
		switch t.kind {
		case typeTransfer:
			refused = n.transfer(ws, t, done, timestamp)
		case typeDelegate:
			refused = ws.delegate(t)
		case typeUndelegate:
			refused = ws.undelegate(t)
		default:
			refused = n.trigger(ws, t, done, height, timestamp)
		}
	}

	if refused != nil {
		undo()
		return nil, refused
	}

	ws.db.Finalise(rules)

	done.fee += done.netFee + done.energyFee

	return done, nil
}

var noBandwidth = &refusal{"BANDWITH_ERROR", "Account resource insufficient error."}

// charge takes bandwidth and the memo fee.
func (n *node) charge(ws *workspace, t *transaction, done *info) *refusal {
	owner, ok := ws.accounts[t.owner]
	if !ok {
		return invalid("account [%s] does not exist", hexBytes(prefixedBytes(t.owner)))
	}

	size := t.bandwidth()
	if t.kind == typeTransfer && !ws.exists(t.to) {
		// The daily allowance does not pay for activating an account: staked bandwidth does, or a fixed fee.
		if cost := size * n.params["getCreateNewAccountBandwidthRate"]; owner.netLimit-owner.netUsed >= cost {
			owner.netUsed += cost
			done.netUsage = cost
		} else if done.netFee = n.params["getCreateAccountFee"]; !ws.take(t.owner, done.netFee) {
			return noBandwidth
		}
	} else {
		switch {
		case owner.netLimit-owner.netUsed >= size:
			owner.netUsed += size
			done.netUsage = size
		case n.params["getFreeNetLimit"]-owner.freeUsed >= size:
			owner.freeUsed += size
			done.netUsage = size
		default:
			if done.netFee = size * n.params["getTransactionFee"]; !ws.take(t.owner, done.netFee) {
				return noBandwidth
			}
		}
	}

	ws.accounts[t.owner] = owner
	if len(t.memo) > 0 {
		if !ws.take(t.owner, n.params["getMemoFee"]) {
			return noBandwidth
		}

		done.fee += n.params["getMemoFee"]
	}

	return nil
}

func invalid(format string, args ...any) *refusal {
	return &refusal{"CONTRACT_VALIDATE_ERROR", "Contract validate error : " + fmt.Sprintf(format, args...)}
}

func (n *node) transfer(ws *workspace, t *transaction, done *info, timestamp int64) *refusal {
	to, known := ws.accounts[t.to]
	switch {
	case t.to == t.owner:
		return invalid("Cannot transfer TRX to yourself.")
	case t.amount <= 0:
		return invalid("Amount must be greater than 0.")
	case known && to.contract && n.params["getForbidTransferToContract"] == 1:
		return invalid("Cannot transfer TRX to a smartContract.")
	}

	fee := int64(0)
	if !known {
		fee = n.params["getCreateNewAccountFeeInSystemContract"]
	}

	if t.amount > 1<<60 || !ws.take(t.owner, t.amount+fee) {
		return invalid("Validate TransferContract error, balance is not sufficient.")
	}

	if !known {
		ws.create(t.to, false, timestamp)
	}

	ws.add(t.to, t.amount)

	done.fee += fee

	return nil
}

func (n *node) trigger(ws *workspace, t *transaction, done *info, height uint64, timestamp int64) *refusal {
	if !ws.accounts[t.to].contract {
		return invalid("No contract or not a smart contract")
	}

	if t.feeLimit < 0 || t.feeLimit > n.params["getMaxFeeLimit"] {
		return invalid("feeLimit must be >= 0 and <= %d", n.params["getMaxFeeLimit"])
	}

	if t.amount < 0 || ws.balance(t.owner) < t.amount {
		return invalid("Validate InternalTransfer error, balance is not sufficient.")
	}

	owner := ws.accounts[t.owner]
	price, staked := n.energyPrice(), owner.energyLeft()
	limit := min(t.feeLimit/price, staked+(ws.balance(t.owner)-t.amount)/price)
	o := n.call(ws, t.owner, t.to, t.amount, t.data, uint64(limit), height, timestamp)
	done.outcome, done.total = &o, o.used
	done.energy = min(staked, o.used)
	done.energyFee = (o.used - done.energy) * price
	owner = ws.accounts[t.owner]
	owner.energyUsed += done.energy

	ws.accounts[t.owner] = owner
	if !ws.take(t.owner, done.energyFee) {
		return invalid("%s insufficient balance", hexBytes(prefixedBytes(t.owner)))
	}

	return nil
}

// energyPrice returns what a unit of energy costs, in sun. Source: java-tron, Constant.SUN_PER_ENERGY, which counts
// while the parameter is 0.
func (n *node) energyPrice() int64 {
	if price := n.params["getEnergyFee"]; price > 0 {
		return price
	}

	return 100
}

// broadcast takes a transaction into the pool, or says why not.
func (n *node) broadcast(t *transaction) *refusal {
	if refused := n.refuse(t, true); refused != nil {
		return refused
	}

	if _, refused := n.execute(n.pending, t, n.head().height+1, n.now()); refused != nil {
		return refused
	}

	n.pool = append(n.pool, t)

	return nil
}

// simulate runs a call as triggerconstantcontract does: with unlimited energy, at the state given,
// leaving nothing behind.
func (n *node) simulate(ws *workspace, at *block, from, to address, value int64, data []byte) outcome {
	undo := ws.undo()
	defer undo()

	return n.call(ws, from, to, value, data, 100_000_000*n.config.EnergyFactor, at.height, at.timestamp)
}
