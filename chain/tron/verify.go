package tron

// What a block's id commits to: the header, and through its transaction root the transactions with their
// signatures and results. The field numbers are those of java-tron, protocol/src/main/protos/core/Tron.proto
// (BlockHeader.raw, Transaction, Transaction.Result).

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// headerJSON is the raw header of a block.
type headerJSON struct {
	Number    int64  `json:"number"`
	TxRoot    string `json:"txTrieRoot"`
	Parent    string `json:"parentHash"`
	Timestamp int64  `json:"timestamp"`
	WitnessID int64  `json:"witness_id"`
	Witness   string `json:"witness_address"`
	Version   int64  `json:"version"`
	StateRoot string `json:"accountStateRoot"`

	unknown bool // it has fields that are not among these
}

// UnmarshalJSON decodes a header and notes unknown fields.
func (h *headerJSON) UnmarshalJSON(text []byte) error {
	type fields headerJSON

	var known fields
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}

	*h = headerJSON(known)
	h.unknown = hasOtherFields(
		text, "number", "txTrieRoot", "parentHash", "timestamp", "witness_id", "witness_address", "version",
		"accountStateRoot",
	)

	return nil
}

// hasOtherFields reports whether an object has a field that is not named.
func hasOtherFields(text []byte, names ...string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return true
	}

	for name := range fields {
		if !slices.Contains(names, name) {
			return true
		}
	}

	return false
}

// id returns the id of the header's block: the SHA-256 of the header, with the height in place of its first
// 8 bytes. ok is false when the header does not encode. Source: java-tron, BlockCapsule.getBlockId.
func (h *headerJSON) id() (id string, ok bool) {
	var parts [4][]byte

	for i, digits := range []string{h.TxRoot, h.Parent, h.Witness, h.StateRoot} {
		var err error
		if parts[i], err = hex.DecodeString(digits); err != nil {
			return "", false
		}
	}

	var b []byte

	b = appendInt(b, 1, h.Timestamp)
	b = appendBytes(b, 2, parts[0])
	b = appendBytes(b, 3, parts[1])
	b = appendInt(b, 7, h.Number)
	b = appendInt(b, 8, h.WitnessID)
	b = appendBytes(b, 9, parts[2])
	b = appendInt(b, 10, h.Version)
	b = appendBytes(b, 11, parts[3])

	sum := sha256.Sum256(b)
	for i := range 8 {
		sum[i] = byte(uint64(h.Number) >> (56 - 8*i))
	}

	return hex.EncodeToString(sum[:]), true
}

// resultJSON is a result of a transaction in its block, as far as blocks have any.
type resultJSON struct {
	Fee         int64  `json:"fee"`
	Code        string `json:"ret"`
	ContractRet string `json:"contractRet"`

	unknown bool // it has fields that are not among these
}

// UnmarshalJSON decodes a result and notes unknown fields.
func (r *resultJSON) UnmarshalJSON(text []byte) error {
	type fields resultJSON

	var known fields
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}

	*r = resultJSON(known)
	r.unknown = hasOtherFields(text, "fee", "ret", "contractRet")

	return nil
}

// The names of a result's codes, by number. SUCESS is java-tron's spelling.
var (
	resultCodes     = []string{"SUCESS", "FAILED"}
	contractResults = []string{
		"DEFAULT", "SUCCESS", "REVERT", "BAD_JUMP_DESTINATION", "OUT_OF_MEMORY", "PRECOMPILED_CONTRACT",
		"STACK_TOO_SMALL", "STACK_TOO_LARGE", "ILLEGAL_OPERATION", "STACK_OVERFLOW", "OUT_OF_ENERGY",
		"OUT_OF_TIME", "JVM_STACK_OVER_FLOW", "UNKNOWN", "TRANSFER_FAILED", "INVALID_CODE",
	}
)

// failed reports whether the result is that of a failed execution.
func (r *resultJSON) failed() bool { return r.Code == "FAILED" || isFailure(r.ContractRet) }

// isFailure reports whether a contract result is a failure. Nodes omit DEFAULT.
func isFailure(contractRet string) bool {
	return contractRet != "" && contractRet != "SUCCESS" && contractRet != "DEFAULT"
}

// encode returns the serialized result; ok is false for one with unknown fields or codes.
func (r *resultJSON) encode() (b []byte, ok bool) {
	b = appendInt(b, 1, r.Fee)

	for _, code := range []struct {
		field protowire.Number
		name  string
		names []string
	}{
		{2, r.Code, resultCodes},
		{3, r.ContractRet, contractResults},
	} {
		number := slices.Index(code.names, code.name)
		if number < 0 && code.name != "" {
			return nil, false
		}

		b = appendInt(b, code.field, int64(max(0, number)))
	}

	return b, !r.unknown
}

// leaf returns the hash of a transaction in the tree of its block: SHA-256 of the whole message. ok is false
// when the JSON may not show all of the message. Source: java-tron, TransactionCapsule.getMerkleHash.
func (t *txJSON) leaf() (hash [32]byte, ok bool) {
	raw, err := hex.DecodeString(t.RawDataHex)
	ok = err == nil && !t.unknown
	b := appendMessage(nil, 1, raw)

	for _, digits := range t.Signatures {
		signature, err := hex.DecodeString(digits)
		ok = ok && err == nil
		b = appendMessage(b, 2, signature)
	}

	for i := range t.Results {
		result, known := t.Results[i].encode()
		ok = ok && known
		b = appendMessage(b, 5, result)
	}

	return sha256.Sum256(b), ok
}

// txRoot returns the Merkle root of hashes, at least one, which it overwrites. Of an odd number the last one
// moves up as it is. Source: java-tron, MerkleTree.createTree.
func txRoot(hashes [][32]byte) [32]byte {
	for len(hashes) > 1 {
		next := hashes[:0]

		for i := 0; i < len(hashes); i += 2 {
			if i+1 == len(hashes) {
				next = append(next, hashes[i])
				continue
			}

			next = append(next, sha256.Sum256(append(hashes[i][:], hashes[i+1][:]...)))
		}

		hashes = next
	}

	return hashes[0]
}

// verify checks the transactions of a block against its header, whose id ref checks. unverified says why they
// could not be; "" when they were.
func (b *blockJSON) verify(node *endpoint) (unverified string, err error) {
	header := &b.Header.Raw
	if header.unknown {
		if id, ok := header.id(); !ok || id != b.BlockID {
			unverified = "unknown header fields"
		}
	}

	if len(b.Transactions) == 0 {
		if header.TxRoot != emptyTxRoot {
			err = node.Garbled("block %d has transactions that the node left out", header.Number)
		}

		return unverified, err
	}

	complete := true
	leaves := make([][32]byte, len(b.Transactions))

	for i := range b.Transactions {
		hash, ok := b.Transactions[i].leaf()
		leaves[i], complete = hash, complete && ok
	}

	root := txRoot(leaves)

	switch {
	case hex.EncodeToString(root[:]) == header.TxRoot:
	case complete:
		err = node.Garbled(
			"block %d has transactions that are not those of its header: another transaction root",
			header.Number,
		)
	case unverified == "":
		unverified = "unknown transaction fields"
	}

	return unverified, err
}

// ownerFields are the fields of the owner's address in the messages of contracts, by contract type, where it
// is not the first field. Source: java-tron, protocol/src/main/protos/core/contract.
var ownerFields = map[contractType]protowire.Number{
	2:  2, // TransferAssetContract
	10: 2, // AccountUpdateContract
	19: 2, // SetAccountIdContract
}

// ownersOf returns the owners of a transaction's contracts: the accounts that it acts for, and that signed
// it. It reads contracts of every type.
func ownersOf(raw []byte) []address {
	var owners []address

	forEachField(raw, func(x field) {
		if x.number != 11 {
			return
		}

		var (
			kind             int64
			parameter, value []byte
		)

		forEachField(x.bytes, func(x field) {
			switch x.number {
			case 1:
				x.setInt(&kind)
			case 2:
				x.setBytes(&parameter)
			}
		})
		forEachField(parameter, func(x field) {
			if x.number == 2 {
				x.setBytes(&value)
			}
		})

		number := max(1, ownerFields[contractType(kind)])

		var owner []byte

		forEachField(value, func(x field) {
			if x.number == number {
				x.setBytes(&owner)
			}
		})

		if a, ok := addressFromBytes(owner); ok && !slices.Contains(owners, a) {
			owners = append(owners, a)
		}
	})

	return owners
}
