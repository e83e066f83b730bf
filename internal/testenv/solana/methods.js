'use strict';

// The JSON-RPC methods, with the names, parameters, answers and error codes of Solana's documentation
// (solana.com/docs/rpc/http), as far as wallets, libraries and this project's driver use them. Methods that begin with "svm_" are the
// controls of tests.

const { Keypair, PublicKey, SystemProgram, Transaction } = require('@solana/web3.js');
const bs58 = require('bs58').default || require('bs58');
const { decode } = require('./machine.js');
const { refuse } = require('./ledger.js');

// Everything the faucet can give. It is put there once, before the first block.
const FAUCET_LAMPORTS = 9_000_000_000_000_000n;

const invalid = (message) => refuse(-32602, `Invalid params: ${message}`);

function address(text) {
  try {
    return new PublicKey(text).toBase58();
  } catch {
    throw invalid(`${text} is not an address`);
  }
}

function methods(machine, ledger) {
  const faucet = Keypair.generate();
  machine.grant(faucet.publicKey.toBase58(), FAUCET_LAMPORTS);
  let priorityFee = 0;

  const commitment = (o) => (o && o.commitment) || 'finalized';
  // reached refuses a caller who has seen a later slot than this backend.
  const reached = (o) => {
    const slot = ledger.slotOf(commitment(o));
    if (o && o.minContextSlot > slot) throw refuse(-32016, 'Minimum context slot has not been reached', { contextSlot: slot });
    return slot;
  };
  // within answers with the slot that a value is of, which must not be older than the caller asked for.
  const within = (o, value) => {
    return { context: { slot: reached(o), apiVersion: '3.0.0' }, value: value() };
  };
  const encode = (account, o = {}) => {
    if (!account) return null;
    let data = Buffer.from(account.data());
    const space = data.length;
    if (o.dataSlice) data = data.subarray(o.dataSlice.offset, o.dataSlice.offset + o.dataSlice.length);
    return {
      lamports: account.lamports(), owner: bs58.encode(account.owner()), executable: account.executable(), rentEpoch: 18446744073709551615n,
      space, data: o.encoding === 'base58' ? [bs58.encode(data), 'base58'] : [data.toString('base64'), 'base64'],
    };
  };
  const readTransaction = (text, o = {}) => decode(o.encoding === 'base64' ? Buffer.from(text, 'base64') : Buffer.from(bs58.decode(text)));
  const signatures = (r) => r.t.tx.signatures.map((s) => bs58.encode(s));
  const accountKeys = (r) => {
    const m = r.t.message;
    const { writable = [], readonly = [] } = r.meta.loadedAddresses || {};
    const listed = (keys, isWritable) => keys.map((pubkey) => ({ pubkey, signer: false, writable: isWritable, source: 'lookupTable' }));
    return [
      ...m.staticAccountKeys.map((k, i) => ({
        pubkey: k.toBase58(), signer: i < m.header.numRequiredSignatures, writable: m.isAccountWritable(i), source: 'transaction',
      })),
      ...listed(writable, true), ...listed(readonly, false),
    ];
  };
  const transaction = (r, encoding = 'json') => {
    const m = r.t.message;
    if (encoding === 'base64') return [r.t.bytes.toString('base64'), 'base64'];
    if (encoding === 'base58') return [bs58.encode(r.t.bytes), 'base58'];
    if (encoding === 'jsonParsed') return { signatures: signatures(r), message: { accountKeys: accountKeys(r), recentBlockhash: m.recentBlockhash, instructions: [] } };
    if (encoding !== 'json') throw invalid(`encoding ${encoding} is not served`);
    const instructions = m.compiledInstructions.map((i) => ({
      programIdIndex: i.programIdIndex, accounts: [...i.accountKeyIndexes], data: bs58.encode(i.data), stackHeight: null,
    }));
    const lookups = (m.addressTableLookups || []).map((l) => ({
      accountKey: l.accountKey.toBase58(), writableIndexes: [...l.writableIndexes], readonlyIndexes: [...l.readonlyIndexes],
    }));
    return {
      signatures: signatures(r),
      message: {
        accountKeys: m.staticAccountKeys.map((k) => k.toBase58()), header: m.header, recentBlockhash: m.recentBlockhash, instructions,
        ...(r.t.version === 0 ? { addressTableLookups: lookups } : {}), ...(r.t.config ? { transactionConfig: r.t.config } : {}),
      },
    };
  };
  const versioned = (r, o) => {
    const highest = o.maxSupportedTransactionVersion;
    if (r.t.version !== 'legacy' && (highest === undefined || r.t.version > highest)) {
      throw refuse(-32015, `Transaction version (${r.t.version}) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": ${r.t.version}`);
    }
    return { meta: metaOf(r), transaction: transaction(r, o.encoding), ...(highest === undefined ? {} : { version: r.t.version }) };
  };
  // metaOf returns what is stored of an execution, or what a test left of it (svm_meta). Nodes have blocks whose meta they never stored,
  // and meta from before token balances were recorded.
  const metaOf = (r) => {
    if (r.damage === 'null') return null;
    if (r.damage !== 'tokens') return r.meta;
    const { preTokenBalances, postTokenBalances, ...meta } = r.meta;
    return meta;
  };
  // simple leaves of a meta what transactionDetails "accounts" has. Source: Agave, UiTransactionStatusMeta::build_simple.
  const simple = (meta) => {
    if (!meta) return meta;
    const { innerInstructions, logMessages, loadedAddresses, rewards, computeUnitsConsumed, ...rest } = meta;
    return rest;
  };
  const options = (o) => (typeof o === 'string' ? { encoding: o } : o || {});
  const preflight = (t) => {
    const failed = (err, logs = [], unitsConsumed = 0) => refuse(-32002, `Transaction simulation failed: ${JSON.stringify(err)}`, { err, logs, accounts: null, unitsConsumed });
    if (ledger.records.has(t.signature)) throw failed('AlreadyProcessed');
    if (!ledger.fresh(t.blockhash)) throw failed('BlockhashNotFound');
    const { err, logs, unitsConsumed } = machine.simulate(t);
    if (err === 'SignatureFailure') throw refuse(-32003, 'Transaction signature verification failure');
    if (err !== null) throw failed(err, logs, unitsConsumed);
  };

  return {
    getHealth: () => 'ok',
    getVersion: () => ({ 'solana-core': '3.0.0', 'feature-set': 1 }),
    getGenesisHash: () => ledger.blocks[0].blockhash,
    getSlot: (o) => reached(o),
    getBlockHeight: (o) => { reached(o); return ledger.heightOf(commitment(o)); },
    getFirstAvailableBlock: () => ledger.blocks[ledger.firstHeight].slot,
    minimumLedgerSlot: () => ledger.blocks[ledger.firstHeight].slot,
    getEpochInfo: (o) => ({
      absoluteSlot: ledger.slotOf(commitment(o)), blockHeight: ledger.heightOf(commitment(o)), epoch: 0, slotIndex: ledger.slotOf(commitment(o)),
      slotsInEpoch: 432000, transactionCount: ledger.records.size,
    }),
    getLatestBlockhash: (o) => within(o, () => ledger.latestBlockhash(commitment(o))),
    isBlockhashValid: (hash, o) => within(o, () => ledger.fresh(hash)),
    getBalance: (a, o) => within(o, () => { const x = ledger.account(address(a), commitment(o)); return x ? x.lamports() : 0n; }),
    getAccountInfo: (a, o) => within(o, () => encode(ledger.account(address(a), commitment(o)), o)),
    getMultipleAccounts: (list, o) => {
      if (list.length > 100) throw invalid('Too many inputs provided; max 100');
      return within(o, () => list.map((a) => encode(ledger.account(address(a), commitment(o)), o)));
    },
    getMinimumBalanceForRentExemption: (size) => machine.rentFor(size),
    getRecentPrioritizationFees: () => ledger.blocks.slice(-150).map((b) => ({ slot: b.slot, prioritizationFee: priorityFee })),
    getSignatureStatuses: (list) => ({
      context: { slot: ledger.slotOf('processed'), apiVersion: '3.0.0' },
      value: list.map((s) => {
        const r = ledger.record(s, 'processed');
        return r ? { slot: r.slot, err: r.err, status: r.meta.status, ...ledger.status(r) } : null;
      }),
    }),
    getSignaturesForAddress: (a, o = {}) => {
      reached(o);
      let list = ledger.history(address(a), commitment(o));
      if (o.before) list = list.slice(list.findIndex((r) => r.signature === o.before) + 1 || list.length);
      const until = o.until ? list.findIndex((r) => r.signature === o.until) : -1;
      if (until >= 0) list = list.slice(0, until);
      return list.slice(0, o.limit || 1000).map((r) => ({
        signature: r.signature, slot: r.slot, err: r.err, memo: null, blockTime: r.time, confirmationStatus: ledger.status(r).confirmationStatus,
      }));
    },
    getTransaction: (signature, o) => {
      o = options(o);
      const r = ledger.record(signature, commitment(o));
      return r && { slot: r.slot, blockTime: r.time, ...versioned(r, o) };
    },
    getBlock: (slot, o) => {
      o = options(o);
      const b = ledger.block(slot, commitment(o));
      const answer = { blockhash: b.blockhash, previousBlockhash: b.previousBlockhash, parentSlot: b.parentSlot, blockTime: b.time, blockHeight: b.height };
      if (o.rewards !== false) answer.rewards = [];
      const details = o.transactionDetails || 'full';
      if (details === 'signatures') answer.signatures = b.records.map((r) => r.signature);
      else if (details === 'full') answer.transactions = b.records.map((r) => versioned(r, o));
      else if (details === 'accounts') {
        answer.transactions = b.records.map((r) => ({
          ...versioned(r, { ...o, encoding: 'json' }), meta: simple(metaOf(r)), transaction: { accountKeys: accountKeys(r), signatures: signatures(r) },
        }));
      } else if (details !== 'none') throw invalid(`transactionDetails ${details} are not served`);
      return answer;
    },
    getBlocks: (from, to, o) => ledger.slots(from, typeof to === 'number' ? to : Infinity, 500_001, commitment(typeof to === 'number' ? o : to)),
    getBlocksWithLimit: (from, limit, o) => ledger.slots(from, Infinity, limit, commitment(o)),
    getBlockTime: (slot) => ledger.block(slot, 'confirmed').time,
    simulateTransaction: (text, o = {}) => {
      const t = readTransaction(text, o);
      return within(o, () => ({ ...machine.simulate(t), accounts: null, returnData: null }));
    },
    sendTransaction: (text, o = {}) => {
      const t = readTransaction(text, o);
      if (!o.skipPreflight) preflight(t);
      ledger.process(t);
      return t.signature;
    },
    requestAirdrop: (to, lamports) => {
      const tx = new Transaction({ feePayer: faucet.publicKey, ...ledger.latestBlockhash('finalized') });
      tx.add(SystemProgram.transfer({ fromPubkey: faucet.publicKey, toPubkey: new PublicKey(address(to)), lamports }));
      // Something that differs, so that two equal requests are two transactions.
      tx.add(SystemProgram.transfer({ fromPubkey: faucet.publicKey, toPubkey: Keypair.generate().publicKey, lamports: 1_000_000 }));
      tx.sign(faucet);
      const t = decode(tx.serialize());
      preflight(t);
      ledger.process(t);
      return t.signature;
    },
    svm_mine: (n = 1) => { for (let i = 0; i < n; i++) ledger.close(); return ledger.tip; },
    svm_skip: (n = 1) => { ledger.skip(n); return ledger.slot; },
    svm_fork: (depth, keep) => { ledger.fork(depth, keep); return ledger.tip; },
    svm_prune: (height) => { ledger.prune(height); return height; },
    svm_pruneRecords: (height) => { ledger.pruneRecords(height); return height; },
    svm_meta: (signature, damage) => { ledger.records.get(signature).damage = damage; return damage; },
    svm_priorityFee: (microLamports) => { priorityFee = microLamports; return priorityFee; },
  };
}

module.exports = { methods };
