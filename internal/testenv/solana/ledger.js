'use strict';

// The ledger: slots, blocks, commitments, forks and history. All of this is simulated: one bank is open and takes transactions as they
// come (commitment "processed"); closing it makes it a block (at once "confirmed"), and so many blocks later it is "finalized".
// Of every account it is kept what it was before each change, so that it can be read as of any block, and put back by a fork.

const crypto = require('crypto');
const { decode } = require('./machine.js');
const bs58 = require('bs58').default || require('bs58');

// A blockhash can be used for this many blocks. Source: MAX_PROCESSING_AGE in Agave.
const BLOCKHASH_AGE = 150;

const newHash = () => bs58.encode(crypto.randomBytes(32));
const refuse = (code, message, data) => Object.assign(new Error(message), { code, data });

class Ledger {
  // finality is how many blocks a block must have on top of it to be final.
  constructor(machine, { finality }) {
    this.machine = machine;
    this.finality = finality;
    this.blocks = []; // by height
    this.bySlot = new Map();
    this.heights = new Map(); // of blockhashes
    this.records = new Map(); // what was executed, by signature
    this.byAddress = new Map();
    this.changes = []; // {slot, address, before}, oldest first
    this.firstHeight = 0;
    this.firstRecordSlot = 0; // signatures and transactions of earlier slots are forgotten
    this.lag = 0; // blocks by which the backend that answers is behind
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
    const block = {
      slot: this.slot, height: this.blocks.length, blockhash: newHash(), parentSlot: parent ? parent.slot : 0,
      previousBlockhash: parent ? parent.blockhash : bs58.encode(Buffer.alloc(32)),
      time: Math.max(parent ? parent.time : 0, Math.floor(Date.now() / 1000)), records: this.open,
    };
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

  // fresh says whether a blockhash can still be used in the open bank.
  fresh(blockhash) {
    const height = this.heights.get(blockhash);
    return height !== undefined && this.tip + 1 <= height + BLOCKHASH_AGE;
  }

  latestBlockhash(commitment) {
    const height = Math.min(this.heightOf(commitment), this.tip);
    return { blockhash: this.blocks[height].blockhash, lastValidBlockHeight: height + BLOCKHASH_AGE };
  }

  // process runs a transaction in the open bank, and does nothing with one that can be in no block.
  process(t) {
    if (this.records.has(t.signature) || !this.fresh(t.blockhash)) return;
    const record = this.machine.execute(t);
    if (record.dropped) return;
    record.slot = this.slot;
    record.time = Math.floor(Date.now() / 1000);
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

  // block returns the block of a slot.
  block(slot, commitment) {
    if (slot > this.slotOf(commitment)) throw refuse(-32004, `Block not available for slot ${slot}`);
    const first = this.blocks[this.firstHeight];
    if (slot < first.slot) throw refuse(-32001, `Block ${slot} cleaned up, does not exist on node. First available block: ${first.slot}`);
    const block = this.bySlot.get(slot);
    if (!block) throw refuse(-32007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`);
    return block;
  }

  // slots lists the slots with a block from one slot to another, at most limit.
  slots(from, to, limit, commitment) {
    const last = Math.min(to, this.slotOf(commitment));
    return this.blocks.filter((b) => b.height >= this.firstHeight && b.slot >= from && b.slot <= last).slice(0, limit).map((b) => b.slot);
  }

  record(signature, commitment) {
    const r = this.records.get(signature);
    return r && r.slot <= this.slotOf(commitment) && r.slot >= this.firstRecordSlot ? r : null;
  }

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
