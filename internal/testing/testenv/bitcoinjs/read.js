// Reads transactions as bitcoinjs does. In: a list of {hex, spent: [{script, value}]}. Out: for each its id, size in virtual
// bytes, weight, its bytes again, and for each input whether its signature is valid for the digest that bitcoinjs computes.
'use strict';

const bitcoin = require('bitcoinjs-lib');
const ecc = require('tiny-secp256k1');

const { SIGHASH_ALL, SIGHASH_DEFAULT } = bitcoin.Transaction;

function isTaproot(script) {
  return script.length === 34 && script[0] === 0x51;
}

function isSigned(tx, i, scripts, values) {
  const witness = tx.ins[i].witness;
  if (isTaproot(scripts[i])) {
    const digest = tx.hashForWitnessV1(i, scripts, values, SIGHASH_DEFAULT);
    return witness.length === 1 && ecc.verifySchnorr(digest, scripts[i].subarray(2), witness[0]);
  }

  const { signature, hashType } = bitcoin.script.signature.decode(witness[0]);
  const code = bitcoin.payments.p2pkh({ hash: scripts[i].subarray(2) }).output;
  const digest = tx.hashForWitnessV0(i, code, values[i], SIGHASH_ALL);
  const owner = bitcoin.payments.p2wpkh({ pubkey: witness[1] }).output;
  return hashType === SIGHASH_ALL && Buffer.compare(Buffer.from(owner), Buffer.from(scripts[i])) === 0 &&
    ecc.verify(digest, witness[1], signature);
}

const request = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const answers = request.map(({ hex, spent }) => {
  const tx = bitcoin.Transaction.fromHex(hex);
  const scripts = spent.map(({ script }) => Buffer.from(script, 'hex'));
  const values = spent.map(({ value }) => BigInt(value));
  return {
    id: tx.getId(),
    vsize: tx.virtualSize(),
    weight: tx.weight(),
    hex: tx.toHex(),
    signed: tx.ins.length === spent.length && tx.ins.every((_, i) => isSigned(tx, i, scripts, values)),
  };
});
process.stdout.write(JSON.stringify(answers));
