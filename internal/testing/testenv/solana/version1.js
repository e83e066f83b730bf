'use strict';

// Transactions of version 1 (SIMD-0385), decoded by @solana/kit: the message comes first and its signatures last, all addresses are in
// the message, and the limits are in its configuration instead of in instructions.

const crypto = require('crypto');
const kit = require('@solana/kit');
const { Message, VersionedTransaction } = require('@solana/web3.js');
const bs58 = require('bs58').default || require('bs58');

const malformed = (why) => Object.assign(new Error(`failed to deserialize transaction: ${why}`), { code: -32602 });

// The bits of the configuration mask. Source: SIMD-0385, TransactionConfigMask.
const FIELDS = [['priorityFee', 0b11], ['computeUnitLimit', 0b100], ['loadedAccountsDataSizeLimit', 0b1000], ['heapSize', 0b10000]];

// configOf returns the configuration as nodes write it in JSON.
function configOf(compiled) {
  const config = {};
  let next = 0;
  for (const [name, bits] of FIELDS) config[name] = compiled.configMask & bits ? Number(compiled.configValues[next++].value) : null;
  return config;
}

// verify checks one signature of a message.
function verify(address, message, signature) {
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bs58.decode(address)]);
  const key = crypto.createPublicKey({ key: der, format: 'der', type: 'spki' });
  if (!signature || !crypto.verify(null, message, key, signature)) {
    throw Object.assign(new Error('Transaction signature verification failure'), { code: -32003 });
  }
}

function decodeVersion1(bytes) {
  let transaction, compiled;
  try {
    transaction = kit.getTransactionDecoder().decode(bytes);
    compiled = kit.getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
    if (Buffer.compare(Buffer.from(kit.getTransactionEncoder().encode(transaction)), bytes) !== 0) throw new Error('trailing bytes');
  } catch (e) {
    throw malformed(e.message);
  }
  if (compiled.version !== 1) throw malformed(`version ${compiled.version}`);

  const signers = compiled.staticAccounts.slice(0, compiled.header.numSignerAccounts);
  const signatures = signers.map((signer) => transaction.signatures[signer]);
  signers.forEach((signer, i) => verify(signer, transaction.messageBytes, signatures[i]));

  const message = new Message({
    header: {
      numRequiredSignatures: compiled.header.numSignerAccounts,
      numReadonlySignedAccounts: compiled.header.numReadonlySignerAccounts,
      numReadonlyUnsignedAccounts: compiled.header.numReadonlyNonSignerAccounts,
    },
    accountKeys: compiled.staticAccounts,
    recentBlockhash: compiled.lifetimeToken,
    instructions: compiled.instructionHeaders.map(({ programAccountIndex }, i) => ({
      programIdIndex: programAccountIndex,
      accounts: [...compiled.instructionPayloads[i].instructionAccountIndices],
      data: bs58.encode(compiled.instructionPayloads[i].instructionData),
    })),
  });
  const tx = new VersionedTransaction(message, signatures.map((s) => Uint8Array.from(s)));
  return {
    bytes: Buffer.from(bytes), equivalent: Buffer.from(tx.serialize()), tx, message, legacy: true, version: 1, config: configOf(compiled),
    signature: bs58.encode(signatures[0]), blockhash: compiled.lifetimeToken,
  };
}

module.exports = { decodeVersion1 };
