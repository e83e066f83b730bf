'use strict';

// The ledger: slots, blocks, commitments, forks and history. All of this is simulated: one bank is open and takes transactions as they
// come (commitment "processed"); closing it makes it a block (at once "confirmed"), and so many blocks later it is "finalized".
// Of every account it is kept what it was before each change, so that it can be read as of any block, and put back by a fork.

const crypto = require('crypto');
const { decode } = require('./machine.js');
const { durableValue, mayUse } = require('./nonce.js');
const bs58 = require('bs58').default || require('bs58');

// A blockhash can be used for this many blocks. Source: MAX_PROCESSING_AGE in Agave.
const BLOCKHASH_AGE = 150;

// The status cache holds signatures of so many final slots; older ones are in the history alone. Source: Agave, runtime/src/status_cache.rs,
// MAX_CACHE_ENTRIES, which is MAX_RECENT_BLOCKHASHES.
const STATUS_CACHE_SLOTS = 300;

const newHash = () => bs58.encode(crypto.randomBytes(32));
const refuse = (code, message, data) => Object.assign(new Error(message), { code, data });

class Ledger {
  // finality is how many blocks a block must have on top of it to be final; slotTime the shortest time between two slots, in
  // milliseconds: blocks that are made faster are timed so. It is 200 as on the main network where slots are not made by the clock.
  constructor(machine, { finality, slotTime }) {
    this.machine = machine;
    this.finality = finality;
    this.slotTime = slotTime || 200;
    this.blocks = []; // by height
    this.bySlot = new Map();
    this.heights = new Map(); // of blockhashes
    this.records = new Map(); // what was executed, by signature
    this.byAddress = new Map();
    this.changes = []; // {slot, address, before}, oldest first
    this.firstHeight = 0;
    this.firstRecordSlot = 0; // signatures and transactions of earlier slots are forgotten
    this.lag = 0; // blocks by which the backend that answers is behind
    this.longTerm = false; // whether forgotten blocks are served from a long-term storage
    this.late = 0; // how often a new block is asked for before its status is written
    this.nonces = true; // whether durable nonces can be used (SIMD-0723 is a draft to remove them)
    this.slot = 0;
    this.open = [];
    this.close();
  }

  get tip() { return this.blocks.length - 1; }

  // heightOf returns the newest height at a commitment. The open bank of "processed" counts as one more.
  heightOf(commitment) {
    const tip = Math.max(0, this.tip - this.lag);
    if (commitment === 'processed') return this.lag ? tip : tip + 1;
    return commitment === 'confirmed' ? tip : Math.max(0, tip - this.finality);
  }

  slotOf(commitment) {
    if (commitment === 'processed' && !this.lag) return this.slot;
    return this.blocks[this.heightOf(commitment)].slot;
  }

  // close makes the open bank a block and opens the next slot.
  close() {
    const parent = this.blocks[this.tip];
    const clock = parent ? Math.max(Date.now(), parent.clock + this.slotTime * (this.slot - parent.slot)) : Date.now();
    const block = {
      clock, slot: this.slot, height: this.blocks.length, blockhash: newHash(), parentSlot: parent ? parent.slot : 0,
      previousBlockhash: parent ? parent.blockhash : bs58.encode(Buffer.alloc(32)),
      time: Math.floor(clock / 1000), records: this.open,
      late: this.late,
    };
    for (const r of block.records) r.time = block.time;
    this.blocks.push(block);
    this.bySlot.set(block.slot, block);
    this.heights.set(block.blockhash, block.height);
    this.open = [];
    this.enter(this.slot + 1);
  }

  enter(slot) {
    this.slot = slot;
    this.machine.enterSlot(slot, this.blocks.slice(-64).reverse(), this.blocks[this.tip].time);
  }

  // skip leaves slots without a block. What the open bank holds comes into the next block that is made.
  skip(n) {
    for (const r of this.open) r.slot = this.slot + n;
    for (const c of this.changes) if (c.slot === this.slot) c.slot += n;
    this.enter(this.slot + n);
  }

  // fresh says whether a blockhash is known at a commitment and can still be used in the open bank.
  fresh(blockhash, commitment = 'processed') {
    const height = this.heights.get(blockhash);
    return height !== undefined && height <= this.heightOf(commitment) && this.tip + 1 <= height + BLOCKHASH_AGE;
  }

  // validAt says whether a blockhash can be used in the bank of a commitment.
  validAt(blockhash, commitment) {
    const height = this.heights.get(blockhash);
    const at = this.heightOf(commitment);
    return height !== undefined && height <= at && at <= height + BLOCKHASH_AGE;
  }

  // nextNonce returns the value that nonce accounts get in the open bank.
  nextNonce() { return durableValue(this.blocks[this.tip].blockhash); }

  // usable says whether the open bank takes what a transaction rests on, a blockhash or a durable nonce, as known at a commitment.
  usable(t, commitment = 'processed') {
    if (this.fresh(t.blockhash, commitment)) return true;
    return this.nonces && mayUse(t.message, t.blockhash, this.nextNonce(), (address) => this.account(address, commitment));
  }

  latestBlockhash(commitment) {
    const height = Math.min(this.heightOf(commitment), this.tip);
    return { blockhash: this.blocks[height].blockhash, lastValidBlockHeight: height + BLOCKHASH_AGE };
  }

  // process runs a transaction in the open bank, and does nothing with one that can be in no block.
  process(t) {
    if (this.records.has(t.signature) || !this.usable(t)) return;
    const record = this.machine.execute(t, this.fresh(t.blockhash), this.nextNonce());
    if (record.dropped) return;
    record.slot = this.slot;
    this.open.push(record);
    this.records.set(record.signature, record);
    for (const { address, before } of record.changed) this.changes.push({ slot: this.slot, address, before });
    for (const key of new Set(record.keys)) {
      if (!this.byAddress.has(key)) this.byAddress.set(key, []);
      this.byAddress.get(key).push(record);
    }
  }

  // account returns an account as it was at the end of the newest slot of a commitment.
  account(address, commitment) {
    const slot = this.slotOf(commitment);
    const changed = this.changes.find((c) => c.slot > slot && c.address === address);
    return changed ? changed.before : this.machine.account(address);
  }

  // fork abandons the open bank and the newest depth blocks for depth + 1 others, in slots after theirs. The first of these holds the
  // transactions to keep; the others are forgotten.
  fork(depth, keep = []) {
    if (depth < 1 || depth > this.tip) throw refuse(-32602, `cannot abandon ${depth} of ${this.tip + 1} blocks`);
    const abandoned = this.blocks.splice(this.blocks.length - depth);
    const from = abandoned[0].slot;
    while (this.changes.length && this.changes[this.changes.length - 1].slot >= from) {
      const { address, before } = this.changes.pop();
      this.machine.restore(address, before);
    }
    const lost = [...abandoned.flatMap((b) => b.records), ...this.open];
    for (const b of abandoned) {
      this.bySlot.delete(b.slot);
      this.heights.delete(b.blockhash);
    }
    for (const r of lost) {
      this.records.delete(r.signature);
      for (const key of new Set(r.keys)) this.byAddress.set(key, this.byAddress.get(key).filter((other) => other !== r));
    }
    this.open = [];
    this.enter(this.slot + 1);
    for (const r of lost) if (keep.includes(r.signature)) this.process(decode(r.t.bytes));
    for (let i = 0; i <= depth; i++) this.close();
  }

  // prune forgets the blocks below a height.
  prune(height) { this.firstHeight = Math.min(height, this.tip); }

  // pruneRecords forgets signatures and transactions below a height, as a node without long-term storage does.
  pruneRecords(height) { this.firstRecordSlot = this.blocks[Math.min(height, this.tip)].slot; }

  // block returns the block of a slot. Whether a slot was skipped is known of final slots alone: above them a slot has a confirmed block,
  // or its block is not available. Source: Agave, rpc/src/rpc.rs, get_block, check_blockstore_root and check_slot_cleaned_up.
  block(slot, commitment) {
    const final = slot <= this.slotOf('finalized');
    const first = this.blocks[this.firstHeight];
    const block = this.bySlot.get(slot);
    if (!final && (commitment === 'finalized' || !block || slot > this.slotOf('confirmed'))) {
      throw refuse(-32004, `Block not available for slot ${slot}`);
    }
    if (block && block.late > 0) {
      block.late--;
      throw refuse(-32014, `Block status not yet available for slot ${slot}`);
    }
    if (slot < first.slot && !this.longTerm) {
      throw refuse(-32001, `Block ${slot} cleaned up, does not exist on node. First available block: ${first.slot}`);
    }
    if (!block && slot < first.slot) throw refuse(-32009, `Slot ${slot} was skipped, or missing in long-term storage`);
    if (!block) throw refuse(-32007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`);
    return block;
  }

  // firstSlot returns the first slot whose block is served.
  firstSlot() { return this.longTerm ? 0 : this.blocks[this.firstHeight].slot; }

  // slots lists the slots with a block from one slot to another, at most limit.
  slots(from, to, limit, commitment) {
    const last = Math.min(to, this.slotOf(commitment));
    return this.blocks.filter((b) => b.slot >= this.firstSlot() && b.slot >= from && b.slot <= last).slice(0, limit).map((b) => b.slot);
  }

  record(signature, commitment) {
    const r = this.records.get(signature);
    return r && r.slot <= this.slotOf(commitment) && r.slot >= this.firstRecordSlot ? r : null;
  }

  // recent says whether the status cache still holds a record.
  recent(record) { return record.slot + STATUS_CACHE_SLOTS >= this.slotOf('finalized'); }

  // history lists what named an address, newest first.
  history(address, commitment) {
    const slot = this.slotOf(commitment);
    return (this.byAddress.get(address) || []).filter((r) => r.slot <= slot && r.slot >= this.firstRecordSlot).reverse();
  }

  status(record) {
    const block = this.bySlot.get(record.slot);
    const confirmations = block ? this.heightOf('confirmed') - block.height : 0;
    if (block && confirmations >= this.finality) return { confirmations: null, confirmationStatus: 'finalized' };
    return { confirmations, confirmationStatus: block ? 'confirmed' : 'processed' };
  }
}

module.exports = { Ledger, refuse };
