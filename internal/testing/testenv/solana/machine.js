'use strict';

// The machine: litesvm, which is the real Solana virtual machine with the real System, Token, Token-2022, associated-token and
// compute-budget programs. Here transactions are decoded, executed and described as a node describes them; which slot they belong to
// is the ledger's business.

const { LiteSvm, Clock, Account } = require('litesvm/dist/internal.js');
const { VersionedTransaction, PublicKey } = require('@solana/web3.js');
const bs58 = require('bs58').default || require('bs58');
const { decodeVersion1 } = require('./version1.js');
const { nonceOf, readNonce, writeNonce } = require('./nonce.js');

const SYSTEM = Buffer.alloc(32);
const NATIVE_MINT = bs58.decode('So11111111111111111111111111111111111111112');
const TOKEN_PROGRAMS = new Set(['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb']);

// The names of litesvm's numbered errors, in their order. Source: the declarations litesvm ships (dist/internal.d.ts).
const TRANSACTION_ERRORS = [
  'AccountInUse', 'AccountLoadedTwice', 'AccountNotFound', 'ProgramAccountNotFound', 'InsufficientFundsForFee', 'InvalidAccountForFee',
  'AlreadyProcessed', 'BlockhashNotFound', 'CallChainTooDeep', 'MissingSignatureForFee', 'InvalidAccountIndex', 'SignatureFailure',
  'InvalidProgramForExecution', 'SanitizeFailure', 'ClusterMaintenance', 'AccountBorrowOutstanding', 'WouldExceedMaxBlockCostLimit',
  'UnsupportedVersion', 'InvalidWritableAccount', 'WouldExceedMaxAccountCostLimit', 'WouldExceedAccountDataBlockLimit',
  'TooManyAccountLocks', 'AddressLookupTableNotFound', 'InvalidAddressLookupTableOwner', 'InvalidAddressLookupTableData',
  'InvalidAddressLookupTableIndex', 'InvalidRentPayingAccount',
];
const INSTRUCTION_ERRORS = [
  'GenericError', 'InvalidArgument', 'InvalidInstructionData', 'InvalidAccountData', 'AccountDataTooSmall', 'InsufficientFunds',
  'IncorrectProgramId', 'MissingRequiredSignature', 'AccountAlreadyInitialized', 'UninitializedAccount', 'UnbalancedInstruction',
];

// errorOf returns the error of an outcome as a node writes it in JSON; null when there is none.
function errorOf(outcome) {
  if (typeof outcome.err !== 'function') return null;
  const e = outcome.err();
  if (typeof e === 'number') return TRANSACTION_ERRORS[e] || `TransactionError${e}`;
  if (typeof e.err === 'function') {
    const inner = e.err();
    const named = typeof inner === 'number' ? INSTRUCTION_ERRORS[inner] || `InstructionError${inner}` : { Custom: inner.code };
    return { InstructionError: [e.index, named] };
  }
  if (e.accountIndex !== undefined) return { InsufficientFundsForRent: { account_index: e.accountIndex } };
  return String(e);
}

const detailsOf = (outcome) => (typeof outcome.meta === 'function' ? outcome.meta() : outcome);

// decode reads a transaction's bytes. litesvm ends the whole process on malformed ones, so nothing reaches it that was not read and
// written back here first.
function decode(bytes) {
  if (bytes[0] & 0x80) return decodeVersion1(bytes);
  let tx;
  try {
    tx = VersionedTransaction.deserialize(bytes);
    if (Buffer.compare(Buffer.from(tx.serialize()), Buffer.from(bytes)) !== 0) throw new Error('trailing or non-canonical bytes');
    if (tx.signatures.length !== tx.message.header.numRequiredSignatures) throw new Error('wrong number of signatures');
    const keys = tx.message.staticAccountKeys.length;
    const loaded = (tx.message.addressTableLookups || []).reduce((n, l) => n + l.writableIndexes.length + l.readonlyIndexes.length, 0);
    for (const ix of tx.message.compiledInstructions) {
      if (ix.programIdIndex >= keys || ix.accountKeyIndexes.some((i) => i >= keys + loaded)) throw new Error('index out of bounds');
    }
  } catch (e) {
    throw Object.assign(new Error(`failed to deserialize transaction: ${e.message}`), { code: -32602 });
  }
  return {
    bytes: Buffer.from(bytes), tx, message: tx.message, legacy: tx.version === 'legacy', version: tx.version,
    signature: bs58.encode(tx.signatures[0]), blockhash: tx.message.recentBlockhash,
  };
}

class Machine {
  constructor() {
    this.svm = new LiteSvm();
    this.svm.setBlockhashCheck(false); // the ledger checks the age of blockhashes; litesvm knows only one
    // The mint of wrapped SOL, as at genesis: nine decimals, initialized, without an authority.
    const mint = Buffer.alloc(82);
    mint.writeUInt16LE(0x0109, 44);
    this.svm.setAccount(NATIVE_MINT, new Account(1_461_600n, mint, bs58.decode('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'), false, 0n));
    this.svm.setTransactionHistory(0n); // the ledger knows what was processed, and a fork undoes it
  }

  // account returns an account, or null when there is none. One without lamports does not exist.
  account(address) {
    const a = this.svm.getAccount(bs58.decode(address));
    return a && a.lamports() > 0n ? a : null;
  }

  // restore puts an account back to what account returned earlier.
  restore(address, before) {
    this.svm.setAccount(bs58.decode(address), before || new Account(0n, new Uint8Array(), SYSTEM, false, 0n));
  }

  // grant makes an account with coin out of nothing.
  grant(address, lamports) { this.svm.setAccount(bs58.decode(address), new Account(lamports, new Uint8Array(), SYSTEM, false, 0n)); }

  rentFor(size) { return this.svm.minimumBalanceForRentExemption(BigInt(size)); }

  // enterSlot sets what programs can see of the ledger: the clock, and the slots before, which lookup tables are made from.
  enterSlot(slot, recent, seconds) {
    const c = this.svm.getClock();
    this.svm.setClock(new Clock(BigInt(slot), c.epochStartTimestamp, c.epoch, c.leaderScheduleEpoch, BigInt(seconds)));
    this.svm.setSlotHashes(recent.map((b) => ({ slot: BigInt(b.slot), hash: b.blockhash })));
  }

  // loadedAddresses resolves the address lookup tables of a transaction.
  loadedAddresses(t) {
    const loaded = { writable: [], readonly: [] };
    for (const lookup of t.message.addressTableLookups || []) {
      const table = this.account(lookup.accountKey.toBase58());
      if (!table) throw Object.assign(new Error('address lookup table not found'), { name: 'AddressLookupTableNotFound' });
      const data = Buffer.from(table.data());
      // 56 bytes of header, then the addresses. Source: the Address Lookup Table program, state.rs.
      const at = (i) => {
        if (56 + 32 * (i + 1) > data.length) throw Object.assign(new Error('index beyond the table'), { name: 'InvalidAddressLookupTableIndex' });
        return bs58.encode(data.subarray(56 + 32 * i, 88 + 32 * i));
      };
      loaded.writable.push(...lookup.writableIndexes.map(at));
      loaded.readonly.push(...lookup.readonlyIndexes.map(at));
    }
    return loaded;
  }

  // tokenBalance describes a token account for preTokenBalances and postTokenBalances; null for any other account.
  tokenBalance(account) {
    if (!account) return null;
    const programId = new PublicKey(account.owner()).toBase58();
    const data = Buffer.from(account.data());
    // 165 bytes, or longer with the account type 2 behind them. Source: SPL Token and Token-2022, state.rs.
    if (!TOKEN_PROGRAMS.has(programId) || data.length < 165 || (data.length > 165 && data[165] !== 2) || data[108] === 0) return null;
    const mint = bs58.encode(data.subarray(0, 32));
    const mintAccount = this.account(mint);
    const decimals = mintAccount ? mintAccount.data()[44] : 0;
    return { mint, owner: bs58.encode(data.subarray(32, 64)), programId, uiTokenAmount: uiAmount(data.readBigUInt64LE(64), decimals) };
  }

  simulate(t) {
    const outcome = this.run(t, t.legacy ? 'simulateLegacyTransaction' : 'simulateVersionedTransaction');
    const details = detailsOf(outcome);
    return { err: errorOf(outcome), logs: details.logs(), unitsConsumed: Number(details.computeUnitsConsumed()) };
  }

  // run hands a transaction to litesvm. One of version 1, which litesvm does not know, is run as the legacy transaction with the same
  // accounts and instructions; its signatures were verified when it was decoded.
  run(t, method) {
    if (!t.equivalent) return this.svm[method](t.bytes);
    this.svm.setSigverify(false);
    try {
      return this.svm[method](t.equivalent);
    } finally {
      this.svm.setSigverify(true);
    }
  }

  // execute runs a transaction for good. It answers {dropped} when it can be in no block (nobody can be charged for it), else what a
  // node stores of it, and under changed the accounts as they were before. dated says that it rests on a blockhash, nextNonce is the value
  // that nonce accounts get.
  execute(t, dated, nextNonce) {
    let loaded;
    try {
      loaded = this.loadedAddresses(t);
    } catch (e) {
      return { dropped: e.name };
    }
    const keys = [...t.message.staticAccountKeys.map((k) => k.toBase58()), ...loaded.writable, ...loaded.readonly];
    const before = keys.map((k) => this.account(k));
    const preTokens = before.map((a) => this.tokenBalance(a));
    const outcome = this.run(t, t.legacy ? 'sendLegacyTransaction' : 'sendVersionedTransaction');
    const err = errorOf(outcome);
    this.advanceNonces(t, keys, before, err !== null, dated, nextNonce);
    const after = keys.map((k) => this.account(k));
    const postTokens = after.map((a) => this.tokenBalance(a));
    const lamports = (accounts) => accounts.map((a) => (a ? a.lamports() : 0n));
    const pre = lamports(before);
    const post = lamports(after);
    const sum = (list) => list.reduce((x, y) => x + y, 0n);
    const fee = sum(pre) - sum(post); // lamports are never made or lost: what is missing is the fee
    if (err !== null && fee === 0n) return { dropped: err };
    const details = detailsOf(outcome);
    const listed = (balances) => balances.map((b, accountIndex) => b && { accountIndex, ...b }).filter(Boolean);
    return {
      t, signature: t.signature, keys, err,
      changed: keys.map((address, i) => ({ address, before: before[i], same: equal(before[i], after[i]) })).filter((c) => !c.same),
      meta: {
        err, status: err === null ? { Ok: null } : { Err: err }, fee, preBalances: pre, postBalances: post,
        preTokenBalances: listed(preTokens), postTokenBalances: listed(postTokens),
        innerInstructions: inner(details), logMessages: details.logs(), computeUnitsConsumed: details.computeUnitsConsumed(),
        loadedAddresses: loaded, rewards: [],
      },
    };
  }

  // advanceNonces sets the nonce accounts that a transaction advanced to the next value. One that failed advances the nonce that it rests
  // on, unless nobody paid its fee: then it is in no block.
  advanceNonces(t, keys, before, failed, dated, next) {
    const used = !dated && nonceOf(t.message);
    keys.forEach((key, i) => {
      const now = this.account(key);
      const stored = readNonce(now);
      const earlier = readNonce(before[i]);
      const advanced = stored && (!earlier || earlier.value !== stored.value);
      const paid = failed && used && used.account === key && this.charged(keys, before);
      if (stored && (advanced || paid)) this.svm.setAccount(bs58.decode(key), writeNonce(now, next));
    });
  }

  // charged says whether a failed transaction took its fee.
  charged(keys, before) {
    const lamports = (a) => (a ? a.lamports() : 0n);
    return keys.some((key, i) => lamports(this.account(key)) !== lamports(before[i]));
  }
}

function equal(a, b) {
  if (!a || !b) return !a && !b;
  return a.lamports() === b.lamports() && Buffer.compare(a.data(), b.data()) === 0 && Buffer.compare(a.owner(), b.owner()) === 0;
}

function inner(details) {
  const describe = (x) => {
    const c = x.instruction();
    return { programIdIndex: c.programIdIndex(), accounts: [...c.accounts()], data: bs58.encode(c.data()), stackHeight: x.stackHeight() };
  };
  return details.innerInstructions().map((list, index) => ({ index, instructions: list.map(describe) })).filter((x) => x.instructions.length);
}

// uiAmount writes an amount as nodes do, the imprecise number included.
function uiAmount(amount, decimals) {
  const digits = amount.toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const text = decimals ? `${whole}.${digits.slice(-decimals)}`.replace(/\.?0+$/, '') : digits;
  return { amount: amount.toString(), decimals, uiAmount: Number(amount) / 10 ** decimals, uiAmountString: text };
}

module.exports = { Machine, decode, TOKEN_PROGRAMS };
