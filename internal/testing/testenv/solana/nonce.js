'use strict';

// Durable nonces. litesvm derives the next value of a nonce account from the transaction's own blockhash, and takes back what a failed
// transaction advanced. On the network the next value comes of the newest blockhash, a failed transaction advances its nonce all the same,
// and a value can be used once and not in the slot in which it was set. Sources: Agave, runtime/src/bank/check_transactions.rs
// (check_nonce_transaction_validity) and svm/src/rollback_accounts.rs; solana-nonce, state.rs.

const crypto = require('crypto');
const { Account } = require('litesvm/dist/internal.js');
const bs58 = require('bs58').default || require('bs58');

const SYSTEM = Buffer.alloc(32);
const ADVANCE = 4; // the number of AdvanceNonceAccount among the instructions of the System program
const SIZE = 80; // version, state, authority, value, lamports per signature
const CURRENT = 1; // the version of nonce accounts whose values differ from blockhashes
const INITIALIZED = 1;

// durableValue returns the value that a nonce account gets while a blockhash is the newest.
function durableValue(blockhash) {
  return bs58.encode(crypto.createHash('sha256').update('DURABLE_NONCE').update(bs58.decode(blockhash)).digest());
}

// readNonce reads a nonce account; null for any other.
function readNonce(account) {
  if (!account) return null;
  const data = Buffer.from(account.data());
  if (Buffer.compare(account.owner(), SYSTEM) !== 0 || data.length !== SIZE) return null;
  if (data.readUInt32LE(0) !== CURRENT || data.readUInt32LE(4) !== INITIALIZED) return null;
  return { authority: bs58.encode(data.subarray(8, 40)), value: bs58.encode(data.subarray(40, 72)) };
}

// writeNonce returns a nonce account with another value.
function writeNonce(account, value) {
  const data = Buffer.from(account.data());
  Buffer.from(bs58.decode(value)).copy(data, 40);
  data.writeBigUInt64LE(5000n, 72);
  return new Account(account.lamports(), data, account.owner(), account.executable(), account.rentEpoch());
}

// nonceOf returns the nonce account that a transaction's first instruction advances, and who signs that instruction; null for a
// transaction that rests on a blockhash.
function nonceOf(message) {
  const [first] = message.compiledInstructions;
  if (!first || !first.accountKeyIndexes.length || first.data.length < 4) return null;
  const keys = message.staticAccountKeys;
  const program = keys[first.programIdIndex];
  if (!program || Buffer.compare(program.toBytes(), SYSTEM) !== 0 || Buffer.from(first.data).readUInt32LE(0) !== ADVANCE) return null;
  const at = first.accountKeyIndexes[0];
  if (!keys[at] || !message.isAccountWritable(at)) return null;
  const signers = first.accountKeyIndexes.filter((i) => i < message.header.numRequiredSignatures).map((i) => keys[i].toBase58());
  return { account: keys[at].toBase58(), signers };
}

// mayUse says whether a transaction may use what a nonce account holds.
function mayUse(message, blockhash, next, accountOf) {
  const named = nonceOf(message);
  const stored = named && readNonce(accountOf(named.account));
  return !!stored && stored.value === blockhash && blockhash !== next && named.signers.includes(stored.authority);
}

module.exports = { durableValue, readNonce, writeNonce, nonceOf, mayUse };
