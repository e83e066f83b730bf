package evm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain"
)

// verifiedBlock is a block whose contents were checked against its header.
type verifiedBlock struct {
	ref      chain.Ref
	json     *blockJSON
	receipts []*receiptJSON // in the order of the transactions
	// unverified lists the parts that could not be checked; see chain.Block.
	unverified string
	// unexpected is set if the network's format does not declare such a part.
	unexpected bool
}

// verification checks one block of one node.
type verification struct {
	driver   *driver
	node     *endpoint
	block    *blockJSON
	receipts []*receiptJSON
	// inside are the indices of the transactions that the header's roots hold.
	inside []int
	// reasons list the parts that could not be checked.
	reasons    []string
	unexpected bool
}

// verifyBlock returns the block with the facts that its header commits to. Each part that cannot be checked
// adds a reason to unverified; the block is then compared with other answers of the node. If a check that
// holds on this network fails here, the error is a failure of the node.
func (d *driver) verifyBlock(
	ctx context.Context,
	node *endpoint,
	block *blockJSON,
	receipts []*receiptJSON,
) (verifiedBlock, error) {
	v := &verification{driver: d, node: node, block: block, receipts: receipts}

	ref, err := block.ref(node)
	if err != nil {
		return verifiedBlock{}, err
	}

	v.leaveOutStateSync()

	for _, check := range []func() error{
		v.checkHeader, v.checkTransactions, v.checkReceipts, v.checkSenders, v.checkPrices,
	} {
		if err := check(); err != nil {
			return verifiedBlock{}, err
		}
	}

	if len(v.reasons) > 0 {
		if err := v.crossCheck(ctx); err != nil {
			return verifiedBlock{}, err
		}
	}

	verified := verifiedBlock{
		ref:        ref,
		json:       block,
		receipts:   receipts,
		unverified: strings.Join(v.reasons, "; "),
		unexpected: v.unexpected,
	}
	d.shows(&verified)

	return verified, nil
}

// holds reports whether all checks are known to hold on this network.
func (d *driver) holds(checks ...string) bool {
	return !slices.ContainsFunc(checks, func(check string) bool {
		_, ok := d.held.Load(check)
		return !ok
	})
}

// passed stores that the checks hold on this network.
func (v *verification) passed(checks ...string) {
	for _, check := range checks {
		v.driver.held.LoadOrStore(check, true)
	}
}

// failed returns a failure of the node if the checks are known to hold. Otherwise it adds a reason, because
// the network may not be of the kind that the checks assume.
func (v *verification) failed(checks []string, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if v.driver.holds(checks...) {
		return v.node.Garbled("block %d does not verify: %s", uint64(*v.block.Number), what)
	}

	v.unchecked(what)

	return nil
}

// maxReasons bounds the reasons that a block's Unverified lists.
const maxReasons = 4

// unchecked adds a reason that the network's format does not declare.
func (v *verification) unchecked(reason string) {
	v.unexpected = true
	v.declared(reason)
}

// declared adds a reason that the network's format declares.
func (v *verification) declared(reason string) {
	if len(v.reasons) < maxReasons && !slices.Contains(v.reasons, reason) {
		v.reasons = append(v.reasons, reason)
	}
}

// stateSyncPrefix is the first part of the bytes that Bor hashes for a state-sync transaction; number and
// hash of the block follow. Source: Bor, "Derived transaction hash".
const stateSyncPrefix = "matic-bor-receipt-"

// leaveOutStateSync sets inside. A state-sync transaction from before PIP-74 is in none of the header's
// roots. Its hash follows from the block's; it moves no value of its own and uses no nonce.
func (v *verification) leaveOutStateSync() {
	v.inside = nil
	number := binary.BigEndian.AppendUint64([]byte(stateSyncPrefix), uint64(*v.block.Number))
	outside := crypto.Keccak256Hash(number, v.block.Hash[:])

	for i := range v.block.Transactions {
		tx := &v.block.Transactions[i]
		if !v.driver.format.stateSync || *tx.Hash != outside {
			v.inside = append(v.inside, i)
			continue
		}

		tx.From, tx.To, tx.Value, tx.Nonce = new(common.Address), nil, new(hexutil.Big), nil

		v.declared("the state-sync transaction is outside the header's roots")
	}
}

// checkHeader checks that the header's fields hash to the block's hash.
func (v *verification) checkHeader() error {
	switch header := v.block.header; {
	case header != nil && header.Hash() == *v.block.Hash:
		v.passed(checkHeader)
		return nil
	case len(v.block.unknown) > 0:
		v.unchecked("unknown header fields " + v.node.Clean(listOf(v.block.unknown)))
		return nil
	case header == nil:
		return v.failed(
			[]string{checkHeader}, "its header cannot be read: %s", v.node.Clean(v.block.headerErr.Error()),
		)
	}

	return v.failed([]string{checkHeader}, "its header does not hash to %s", v.block.Hash.Hex())
}

// listOf returns the first of the names, which the node may have made up, as one short line.
func listOf(names []string) string {
	var short []string
	for _, name := range names[:min(len(names), 5)] {
		short = append(short, strings.Trim(strconv.QuoteToASCII(name[:min(len(name), 40)]), `"`))
	}

	return strings.Join(short, ", ")
}

// checkTransactions checks each transaction's hash and the transactions root. It replaces the node's claims
// about the transactions by the contents of their bytes.
func (v *verification) checkTransactions() error {
	leaves := make([][]byte, 0, len(v.inside))

	for _, i := range v.inside {
		leaf, err := v.checkTransaction(&v.block.Transactions[i])
		if err != nil {
			return err
		}

		if leaf != nil {
			leaves = append(leaves, leaf)
		}
	}

	if len(leaves) < len(v.inside) {
		return nil // a reason says why
	}

	if listRoot(leaves) != *v.block.TransactionsRoot {
		return v.failed([]string{checkTxRoot}, "its transactions are not those of its transactions root")
	}

	v.passed(checkTxRoot)

	return nil
}

// checkTransaction returns the transaction's encoding; nil if the encoding is unknown.
func (v *verification) checkTransaction(tx *txJSON) (leaf []byte, err error) {
	kind, err := tx.kind(v.node)
	if err != nil {
		return nil, err
	}

	format := v.driver.format

	decoded, err := format.decodeTx(kind, tx.raw)

	switch {
	case errors.Is(err, errUnknownType):
		return v.checkOpaque(tx, kind), nil
	case err != nil:
		return nil, v.failed(
			[]string{
				checkTx(kind),
			},
			"transaction %s cannot be read: %s",
			tx.Hash.Hex(),
			v.node.Clean(err.Error()),
		)
	case decoded.hash != *tx.Hash:
		return nil, v.failed([]string{checkTx(kind)}, "transaction %s does not have that hash", tx.Hash.Hex())
	}

	v.passed(checkTx(kind))
	decoded.replace(tx)

	return decoded.encoded, nil
}

// replace replaces the node's claims about a transaction by the contents of its bytes. A signed transaction
// gets its sender from the signature.
func (d *decodedTx) replace(tx *txJSON) {
	tx.To, tx.Value, tx.Nonce, tx.signed = d.to, (*hexutil.Big)(d.value), (*hexutil.Uint64)(d.nonce), d.signed
	if d.signed == nil {
		tx.From = &d.from
	}
}

// checkOpaque returns the encoding of a transaction whose JSON leaves fields out, if the node gave the
// encoding.
func (v *verification) checkOpaque(tx *txJSON, kind uint8) (leaf []byte) {
	format := v.driver.format

	given := len(tx.encoded) > 0 && tx.encoded[0] == kind && crypto.Keccak256Hash(tx.encoded) == *tx.Hash
	if given {
		leaf = tx.encoded
	}

	switch {
	case slices.Contains(format.unverifiable, kind):
		v.declared(fmt.Sprintf("transactions of type %#x have no known encoding", kind))
	case !slices.Contains(format.opaque, kind):
		v.unchecked(fmt.Sprintf("unknown transaction type %#x", kind))
	default:
		tx.From, tx.To, tx.Value, tx.Nonce = new(common.Address), nil, new(hexutil.Big), nil

		if !given {
			v.declared(fmt.Sprintf("transactions of type %#x were not given as bytes", kind))
		}
	}

	return leaf
}

// checkSenders recovers the senders from the signatures, on all cores, and compares them with the node's
// claims.
func (v *verification) checkSenders() error {
	var signed []*txJSON

	for i := range v.block.Transactions {
		if tx := &v.block.Transactions[i]; tx.signed != nil {
			signed = append(signed, tx)
		}
	}

	if len(signed) == 0 {
		return nil
	}

	wrong := make([]bool, len(signed))
	v.driver.recoverSenders(signed, wrong)

	if i := slices.Index(wrong, true); i >= 0 {
		return v.failed(
			[]string{
				checkSender,
			},
			"transaction %s was not signed by the sender that it names",
			signed[i].Hash.Hex(),
		)
	}

	v.passed(checkSender)

	return nil
}

// recoverSenders sets the senders of transactions to their signers. It sets wrong for each transaction with
// another claimed sender. A transaction without a valid signature is wrong too and keeps its claimed sender.
func (d *driver) recoverSenders(signed []*txJSON, wrong []bool) {
	signer := types.LatestSignerForChainID(new(big.Int).SetUint64(d.network.ChainID))
	workers := runtime.GOMAXPROCS(0)

	var group errgroup.Group
	for worker := range workers {
		group.Go(func() error {
			for i := worker; i < len(signed); i += workers {
				from, err := signer.Sender(signed[i].signed)
				wrong[i] = err != nil || from != *signed[i].From

				if err == nil {
					signed[i].From = &from
				}
			}

			return nil
		})
	}

	_ = group.Wait() // no worker fails
}
