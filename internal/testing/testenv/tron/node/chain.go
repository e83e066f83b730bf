package main

// Blocks, the pool, forks and finality.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// block is one block with the state after it.
type block struct {
	height    uint64
	id        [32]byte
	parent    [32]byte
	root      [32]byte // txTrieRoot; zeros for an empty block
	witness   address
	timestamp int64
	txs       []*transaction
	infos     []*info
	state     chainState
}

// node is the chain with its pool.
type node struct {
	mu       sync.Mutex
	config   Config
	params   map[string]int64
	store    *store
	deployed []string

	blocks  []*block // by height
	oldest  uint64   // blocks below it were thrown away
	byID    map[[32]byte]*block
	pool    []*transaction
	pending *workspace // the newest block's state with the pool's effects
	forks   uint64
	skip    int64 // milliseconds that time was moved on
	seen    int   // requests served, for the control interface
}

// defaults are chain parameters of the main network, of those that this node goes by. Source:
// getchainparameters of the main network as the TRON documentation prints it, and java-tron's
// DynamicPropertiesStore.
var defaults = map[string]int64{
	"getCreateAccountFee":                    100_000,
	"getTransactionFee":                      1_000,
	"getCreateNewAccountFeeInSystemContract": 1_000_000,
	"getCreateNewAccountBandwidthRate":       1,
	"getEnergyFee":                           100,
	"getFreeNetLimit":                        600,
	"getMaxFeeLimit":                         15_000_000_000,
	"getMemoFee":                             1_000_000,
	"getForbidTransferToContract":            1,
}

// maxLifetime is how far ahead an expiration may be, in milliseconds. Source:
// Constant.MAXIMUM_TIME_UNTIL_EXPIRATION.
const maxLifetime = 24 * 60 * 60 * 1000

func newNode(c Config) (*node, error) {
	if c.SolidLag == 0 {
		c.SolidLag = 18
	}

	if c.EnergyFactor == 0 {
		c.EnergyFactor = 1
	}

	n := &node{config: c, params: maps.Clone(defaults), store: newStore(), byID: map[[32]byte]*block{}}
	for k, v := range c.Parameters {
		if _, known := defaults[k]; !known {
			return nil, fmt.Errorf("chain parameter %q is not one of this node", k)
		}

		n.params[k] = v
	}

	ws, err := n.store.open(chainState{root: emptyRoot, accounts: map[address]account{}})
	if err != nil {
		return nil, err
	}

	for text, sun := range c.Balances {
		a, ok := addressHex(text)
		if !ok {
			return nil, fmt.Errorf("balance of %q: not an address", text)
		}

		ws.create(a, false, 0)
		ws.add(a, sun)
	}

	for i, d := range c.Contracts {
		a, err := n.deploy(ws, i, d)
		if err != nil {
			return nil, fmt.Errorf("contract %d: %w", i, err)
		}

		n.deployed = append(n.deployed, hexBytes(prefixedBytes(a)))
	}

	w, err := ws.commit(0)
	if err != nil {
		return nil, err
	}

	genesis := &block{
		state:     w,
		timestamp: time.Now().UnixMilli() - 60_000,
		parent:    sha256.Sum256([]byte("genesis " + c.Genesis)),
	}
	n.append(genesis)

	return n, n.repool()
}

// append computes the id and makes the block the newest one. The id of a block is the SHA-256 of
// its header with the height over the first 8 bytes. Source: java-tron, BlockCapsule.getBlockId.
func (n *node) append(b *block) {
	b.root = b.txRoot()
	b.id = b.header().id()
	n.blocks = append(n.blocks, b)
	n.byID[b.id] = b
}

// txRoot returns the Merkle root of the block's transactions with their results; zeros for none. An odd one
// moves up as it is. Source: java-tron, BlockCapsule.calcMerkleRoot, MerkleTree.createTree.
func (b *block) txRoot() (root [32]byte) {
	if len(b.txs) == 0 {
		return root
	}

	var level [][]byte

	for k, t := range b.txs {
		sum := sha256.Sum256(t.included(b.infos[k].resultName()))
		level = append(level, sum[:])
	}

	for len(level) > 1 {
		var parents [][]byte

		for pair := range slices.Chunk(level, 2) {
			if len(pair) == 2 {
				sum := sha256.Sum256(slices.Concat(pair...))
				pair = [][]byte{sum[:]}
			}

			parents = append(parents, pair[0])
		}

		level = parents
	}

	return [32]byte(level[0])
}

const blockVersion = 34

type header struct {
	timestamp, number  int64
	root, parent       []byte
	witness            []byte
	witnessID, version int64
}

func (b *block) header() header {
	return header{
		timestamp: b.timestamp,
		number:    int64(b.height),
		root:      b.root[:],
		parent:    b.parent[:],
		witness:   prefixedBytes(b.witness),
		version:   blockVersion,
	}
}

func (h header) id() [32]byte {
	sum := sha256.Sum256(newMessage("BlockHeaderRaw", map[string]any{
		"timestamp":       h.timestamp,
		"txTrieRoot":      h.root,
		"parentHash":      h.parent,
		"number":          h.number,
		"witness_id":      h.witnessID,
		"witness_address": h.witness,
		"version":         int32(h.version),
	}).encode())
	binary.BigEndian.PutUint64(sum[:8], uint64(h.number))

	return sum
}

func (n *node) head() *block { return n.blocks[len(n.blocks)-1] }

func (n *node) solid() *block { return n.blocks[max(0, len(n.blocks)-1-n.config.SolidLag)] }

// at returns the block of a height; nil when there is none or it was thrown away. The genesis block
// always stays.
func (n *node) at(height int64) *block {
	if height < 0 || height >= int64(len(n.blocks)) || (height > 0 && uint64(height) < n.oldest) {
		return nil
	}

	return n.blocks[height]
}

// now is the time of a block that would be made now.
func (n *node) now() int64 { return max(time.Now().UnixMilli()+n.skip, n.head().timestamp+1) }

// mine makes a block with the transactions that wait and still can be included, in their order, and
// leaves the rest out for good.
func (n *node) mine(txs []*transaction) error {
	parent := n.head()
	b := &block{height: parent.height + 1, parent: parent.id, timestamp: n.now()}
	b.witness[19], b.witness[18] = byte(n.forks), 0x57

	ws, err := n.store.open(parent.state)
	if err != nil {
		return err
	}

	for _, t := range txs {
		if n.refuse(t, false) != nil {
			continue
		}

		done, refused := n.execute(ws, t, b.height, b.timestamp)
		if refused == nil {
			b.txs, b.infos = append(b.txs, t), append(b.infos, done)
		}
	}

	if b.state, err = ws.commit(b.height); err != nil {
		return err
	}

	n.append(b)

	return nil
}

// mineBlocks makes blocks; the first takes the pool.
func (n *node) mineBlocks(count int) error {
	for range count {
		if err := n.mine(n.pool); err != nil {
			return err
		}

		n.pool = nil
	}

	return n.repool()
}

// fork replaces the newest blocks by one more than they were. The first of the new ones holds those
// of the old transactions that are to be kept; the others are gone.
func (n *node) fork(depth int, keep []string) error {
	first := len(n.blocks) - depth
	if depth < 1 || first < 1 || first <= int(n.solid().height) {
		return fmt.Errorf(
			"a fork of %d blocks would undo block %d, which is solidified",
			depth, n.solid().height,
		)
	}

	var kept []*transaction

	for _, b := range n.blocks[first:] {
		for _, t := range b.txs {
			if slices.Contains(keep, hexBytes(t.id[:])) {
				kept = append(kept, t)
			}
		}

		delete(n.byID, b.id)
	}

	n.blocks = n.blocks[:first]

	n.forks++
	if err := n.mine(kept); err != nil {
		return err
	}

	for range depth {
		if err := n.mine(nil); err != nil {
			return err
		}
	}

	return n.repool()
}

// repool executes the pool anew on the newest block and drops what can no longer be included.
func (n *node) repool() error {
	ws, err := n.store.open(n.head().state)
	if err != nil {
		return err
	}

	n.pending = ws
	pool := n.pool

	n.pool = nil
	for _, t := range pool {
		if n.refuse(t, false) != nil {
			continue
		}

		if _, refused := n.execute(ws, t, n.head().height+1, n.now()); refused == nil {
			n.pool = append(n.pool, t)
		}
	}

	return nil
}

// included finds a transaction in the chain.
func (n *node) included(id [32]byte) (*block, int) {
	for i := len(n.blocks) - 1; i >= 0; i-- {
		if uint64(i) < n.oldest {
			break
		}

		for k, t := range n.blocks[i].txs {
			if t.id == id {
				return n.blocks[i], k
			}
		}
	}

	return nil, 0
}

func (n *node) waiting(id [32]byte) *transaction {
	for _, t := range n.pool {
		if t.id == id {
			return t
		}
	}

	return nil
}
