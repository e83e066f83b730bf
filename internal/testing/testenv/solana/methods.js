'use strict';

// The JSON-RPC methods, with the names, parameters, answers and error codes of Solana's documentation
// (solana.com/docs/rpc/http), as far as wallets, libraries and this project's driver use them. Methods that begin with "svm_" are the
// controls of tests.

const { Keypair, PublicKey, SystemProgram, Transaction } = require('@solana/web3.js');
const bs58 = require('bs58').default || require('bs58');
const { decode, TOKEN_PROGRAMS } = require('./machine.js');
const { refuse } = require('./ledger.js');

// Everything the faucet can give. It is put there once, before the first block.
const FAUCET_LAMPORTS = 9_000_000_000_000_000n;

// The limits of one call. Source: Agave, rpc-client-api/src/request.rs and rpc/src/rpc.rs.
const MOST_ACCOUNTS = 100; // MAX_MULTIPLE_ACCOUNTS
const MOST_SIGNATURES = 1000; // MAX_GET_CONFIRMED_SIGNATURES_FOR_ADDRESS2_LIMIT
const MOST_STATUSES = 256; // MAX_GET_SIGNATURE_STATUSES_QUERY_ITEMS
const MOST_SLOTS = 500_000; // MAX_GET_CONFIRMED_BLOCKS_RANGE
const MOST_FEE_ACCOUNTS = 128; // MAX_TX_ACCOUNT_LOCKS

// The size of a transaction in bytes. Source: PACKET_DATA_SIZE; of version 1, SIMD-0296.
const MOST_BYTES = 1232;
const MOST_BYTES_VERSION_1 = 4096;

const COMMITMENTS = ['processed', 'confirmed', 'finalized'];

const invalid = (message) => refuse(-32602, message);

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

  let history = true; // --enable-rpc-transaction-history
  let offered = COMMITMENTS; // that calls may name

  const commitment = (o) => {
    const named = (o && o.commitment) || 'finalized';
    if (!offered.includes(named)) throw invalid(`Invalid params: unknown variant \`${named}\`, expected one of ${offered.join(', ')}.`);
    return named;
  };
  // storedAt returns the commitment of a call for what is stored, which nothing is at "processed". Source: check_is_at_least_confirmed.
  const storedAt = (o) => {
    if (commitment(o) === 'processed') throw invalid('Method does not support commitment below `confirmed`');
    return commitment(o);
  };
  const needsHistory = () => {
    if (!history) throw refuse(-32011, 'Transaction history is not available from this node');
  };
  const atMost = (list, most) => {
    if (list.length > most) throw invalid(`Too many inputs provided; max ${most}`);
  };
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
  const readTransaction = (text, o = {}) => {
    const bytes = o.encoding === 'base64' ? Buffer.from(text, 'base64') : Buffer.from(bs58.decode(text));
    const most = bytes[0] === 0x81 ? MOST_BYTES_VERSION_1 : MOST_BYTES;
    if (bytes.length > most) throw invalid(`decoded VersionedTransaction too large: ${bytes.length} bytes (max: ${most} bytes)`);
    return decode(bytes);
  };
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
  const preflight = (t, o = {}) => {
    const at = COMMITMENTS.includes(o.preflightCommitment) ? o.preflightCommitment : 'finalized';
    reached({ commitment: at, minContextSlot: o.minContextSlot });
    const failed = (err, logs = [], unitsConsumed = 0) => refuse(-32002, `Transaction simulation failed: ${JSON.stringify(err)}`, { err, logs, accounts: null, unitsConsumed });
    if (ledger.records.has(t.signature)) throw failed('AlreadyProcessed');
    if (!ledger.usable(t, at)) throw failed('BlockhashNotFound');
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
    getFirstAvailableBlock: () => ledger.firstSlot(),
    minimumLedgerSlot: () => ledger.blocks[ledger.firstHeight].slot,
    getEpochInfo: (o) => ({
      absoluteSlot: ledger.slotOf(commitment(o)), blockHeight: ledger.heightOf(commitment(o)), epoch: 0, slotIndex: ledger.slotOf(commitment(o)),
      slotsInEpoch: 432000, transactionCount: ledger.records.size,
    }),
    getLatestBlockhash: (o) => within(o, () => ledger.latestBlockhash(commitment(o))),
    // Source: Agave, Bank::is_blockhash_valid: it asks the bank of the commitment.
    isBlockhashValid: (hash, o) => within(o, () => ledger.validAt(hash, commitment(o))),
    getBalance: (a, o) => within(o, () => { const x = ledger.account(address(a), commitment(o)); return x ? x.lamports() : 0n; }),
    getAccountInfo: (a, o) => within(o, () => encode(ledger.account(address(a), commitment(o)), o)),
    getMultipleAccounts: (list, o) => {
      atMost(list, MOST_ACCOUNTS);
      return within(o, () => list.map((a) => encode(ledger.account(address(a), commitment(o)), o)));
    },
    // Source: solana.com/docs/rpc/http/gettokenaccountsbyowner; the order of its answer is that of no key.
    getTokenAccountsByOwner: (owner, filter, o) => {
      const { programId, mint } = filter || {};
      if ((programId === undefined) === (mint === undefined)) throw invalid('Invalid params: expected mint or programId');
      if (programId !== undefined && !TOKEN_PROGRAMS.has(address(programId))) throw invalid('Invalid param: unrecognized Token program id');
      return within(o, () => [...ledger.byAddress.keys()].map((pubkey) => ({ pubkey, a: ledger.account(pubkey, commitment(o)) })).filter(({ a }) => {
        const held = machine.tokenBalance(a);
        return held && held.owner === address(owner) && (mint === undefined ? held.programId === programId : held.mint === mint);
      }).map(({ pubkey, a }) => ({ pubkey, account: encode(a, o) })));
    },
    getMinimumBalanceForRentExemption: (size) => machine.rentFor(size),
    getRecentPrioritizationFees: (list = []) => {
      atMost(list, MOST_FEE_ACCOUNTS);
      list.forEach(address);
      return ledger.blocks.slice(-150).map((b) => ({ slot: b.slot, prioritizationFee: priorityFee }));
    },
    getSignatureStatuses: (list, o = {}) => {
      atMost(list, MOST_STATUSES);
      if (o.searchTransactionHistory) needsHistory();
      return {
        context: { slot: ledger.slotOf('processed'), apiVersion: '3.0.0' },
        value: list.map((s) => {
          const r = ledger.record(s, 'processed');
          if (!r || (!o.searchTransactionHistory && !ledger.recent(r))) return null;
          return { slot: r.slot, err: r.err, status: r.meta.status, ...ledger.status(r) };
        }),
      };
    },
    getSignaturesForAddress: (a, o = {}) => {
      needsHistory();
      const at = storedAt(o);
      const limit = o.limit === undefined ? MOST_SIGNATURES : o.limit;
      if (limit < 1 || limit > MOST_SIGNATURES) throw invalid(`Invalid limit; max ${MOST_SIGNATURES}`);
      reached(o);
      let list = ledger.history(address(a), at);
      // The bounds may be of other addresses. Source: Agave, rpc/src/rpc.rs, RpcCustomError::FilterTransactionNotFound.
      const bound = (signature) => {
        const r = ledger.record(signature, at);
        if (!r) throw refuse(-32020, `Transaction ${signature} not found`);
        const own = list.indexOf(r);
        return own >= 0 ? own : list.findIndex((other) => other.slot < r.slot);
      };
      if (o.until) { const end = bound(o.until); if (end >= 0) list = list.slice(0, end); }
      if (o.before) { const start = bound(o.before); list = start < 0 ? [] : list.slice(start + (list[start].signature === o.before ? 1 : 0)); }
      return list.slice(0, limit).map((r) => ({
        signature: r.signature, slot: r.slot, err: r.err, memo: null, blockTime: r.time, confirmationStatus: ledger.status(r).confirmationStatus,
      }));
    },
    getTransaction: (signature, o) => {
      needsHistory();
      o = options(o);
      const r = ledger.record(signature, storedAt(o));
      return r && { slot: r.slot, blockTime: r.time, ...versioned(r, o) };
    },
    getBlock: (slot, o) => {
      needsHistory();
      o = options(o);
      const b = ledger.block(slot, storedAt(o));
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
    getBlocks: (from, to, o) => {
      const bounded = typeof to === 'number';
      if (bounded && to - from > MOST_SLOTS) throw invalid(`Slot range too large; max ${MOST_SLOTS}`);
      return ledger.slots(from, bounded ? to : from + MOST_SLOTS, MOST_SLOTS + 1, storedAt(bounded ? o : to));
    },
    getBlocksWithLimit: (from, limit, o) => {
      if (limit > MOST_SLOTS) throw invalid(`Limit too large; max ${MOST_SLOTS}`);
      return ledger.slots(from, Infinity, limit, storedAt(o));
    },
    getBlockTime: (slot) => ledger.block(slot, 'confirmed').time,
    simulateTransaction: (text, o = {}) => {
      const t = readTransaction(text, o);
      const fits = ledger.usable(t, commitment(o));
      return within(o, () => ({ ...(fits ? machine.simulate(t) : { err: 'BlockhashNotFound', logs: [] }), accounts: null, returnData: null }));
    },
    sendTransaction: (text, o = {}) => {
      commitment({ commitment: o.preflightCommitment });
      const t = readTransaction(text, o);
      if (!o.skipPreflight) preflight(t, o);
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
    svm_longTerm: (on) => { ledger.longTerm = on; return on; },
    svm_late: (calls) => { ledger.late = calls; return calls; },
    svm_commitments: (list) => { offered = list; return list; },
    svm_nonces: (on) => { ledger.nonces = on; return on; },
    svm_history: (on) => { history = on; return on; },
    svm_meta: (signature, damage) => { ledger.records.get(signature).damage = damage; return damage; },
    svm_priorityFee: (microLamports) => { priorityFee = microLamports; return priorityFee; },
  };
}

module.exports = { methods };
