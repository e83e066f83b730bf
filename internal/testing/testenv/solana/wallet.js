#!/usr/bin/env node
'use strict';

// A payer's wallet on @solana/web3.js and @solana/spl-token: payments of every form as others make them, and those libraries' opinion of
// transactions of ours. It reads one JSON object from standard input and prints one.
//
//   {"do": "mint", "url", "secret", "decimals", "program": "token" | "token-2022", "fee": {"bps", "most"}}   a new mint
//   {"do": "pay", "url", "secret", "to", "lamports", "form": "legacy" | "v0" | "table" | "v1"}               coin
//   {"do": "payTokens", "url", "secret", "mint", "program", "to", "amount", "form"}                          freshly minted tokens
//   {"do": "payElsewhere", "url", "secret", "mint", "program", "to", "amount"}                              to a second account
//   {"do": "nonce", "url", "secret", "to"}                                                                   a nonce account of to
//   {"do": "read", "raw"}                                                                                    a transaction of ours
//   {"do": "addresses", "keys", "mint"}                                                                      what public keys derive to

const kit = require('@solana/kit');
const web3 = require('@solana/web3.js');
const spl = require('@solana/spl-token');
const bs58 = require('bs58').default || require('bs58');
const { Connection, Keypair, PublicKey, SystemProgram, Transaction, TransactionMessage, VersionedTransaction, AddressLookupTableProgram } = web3;

const programOf = (name) => (name === 'token-2022' ? spl.TOKEN_2022_PROGRAM_ID : spl.TOKEN_PROGRAM_ID);

const wallet = (job) => ({ connection: new Connection(job.url, 'confirmed'), payer: Keypair.fromSecretKey(bs58.decode(job.secret)) });

// control calls one of the node's controls for tests.
async function control(job, method, ...params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const answer = await (await fetch(job.url, { method: 'POST', body })).json();
  if (answer.error) throw new Error(answer.error.message);
}

// sendVersion1 sends instructions in a transaction of version 1, made and signed by @solana/kit.
async function sendVersion1(job, instructions) {
  const { connection, payer } = wallet(job);
  const latest = await connection.getLatestBlockhash('finalized');
  const signer = await kit.createKeyPairSignerFromBytes(payer.secretKey);
  const role = (k) => (k.isSigner ? 2 : 0) + (k.isWritable ? 1 : 0);
  const message = kit.appendTransactionMessageInstructions(
    instructions.map((ix) => ({
      programAddress: ix.programId.toBase58(), accounts: ix.keys.map((k) => ({ address: k.pubkey.toBase58(), role: role(k) })), data: ix.data,
    })),
    kit.setTransactionMessageConfig(
      { computeUnitLimit: 200_000, loadedAccountsDataSizeLimit: 1 << 20 },
      kit.setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: latest.blockhash, lastValidBlockHeight: BigInt(latest.lastValidBlockHeight) },
        kit.setTransactionMessageFeePayerSigner(signer, kit.createTransactionMessage({ version: 1 })),
      ),
    ),
  );
  const signed = await kit.signTransactionMessageWithSigners(message);
  return connection.sendEncodedTransaction(kit.getBase64EncodedWireTransaction(signed));
}

// send signs instructions in a form and hands them to the node, which runs them first.
async function send(job, instructions, signers = [], form = 'legacy', tables = []) {
  const { connection, payer } = wallet(job);
  const { blockhash } = await connection.getLatestBlockhash('finalized');
  let tx;
  if (form === 'legacy') {
    tx = new Transaction({ feePayer: payer.publicKey, recentBlockhash: blockhash }).add(...instructions);
    tx.sign(payer, ...signers);
  } else {
    tx = new VersionedTransaction(new TransactionMessage({ payerKey: payer.publicKey, recentBlockhash: blockhash, instructions }).compileToV0Message(tables));
    tx.sign([payer, ...signers]);
  }
  return connection.sendRawTransaction(tx.serialize());
}

// tableWith makes an address lookup table with the given addresses, which can be used in the next slot.
async function tableWith(job, addresses) {
  const { connection, payer } = wallet(job);
  await control(job, 'svm_mine', 1);
  const recentSlot = await connection.getSlot('confirmed');
  const [create, table] = AddressLookupTableProgram.createLookupTable({ authority: payer.publicKey, payer: payer.publicKey, recentSlot });
  const extend = AddressLookupTableProgram.extendLookupTable({ lookupTable: table, authority: payer.publicKey, payer: payer.publicKey, addresses });
  await send(job, [create, extend]);
  await control(job, 'svm_mine', 2);
  return (await connection.getAddressLookupTable(table)).value;
}

async function inForm(job, instructions, addresses) {
  if (job.form === 'v1') return { signature: await sendVersion1(job, instructions) };
  if (job.form !== 'table') return { signature: await send(job, instructions, [], job.form || 'legacy') };
  return { signature: await send(job, instructions, [], 'v0', [await tableWith(job, addresses)]) };
}

// withReferences adds the keys that a payment of a request names.
function withReferences(job, instruction) {
  for (const pubkey of job.references || []) instruction.keys.push({ pubkey, isSigner: false, isWritable: false });
  return instruction;
}

// baseUnits returns the base units of a decimal amount.
function baseUnits(amount, decimals) {
  const [whole, fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}

const jobs = {
  // payURI pays a transfer request, as the specification of Solana Pay has wallets do.
  async payURI(job) {
    const url = new URL(job.uri);
    if (url.protocol !== 'solana:') throw new Error(`${job.uri} is no transfer request`);
    const [amount, mint] = [url.searchParams.get('amount'), url.searchParams.get('spl-token')];
    const shown = { label: url.searchParams.get('label'), message: url.searchParams.get('message') };
    const references = url.searchParams.getAll('reference').map((key) => new PublicKey(key));
    const paying = { ...job, to: url.pathname, references };
    if (!mint) return { ...shown, ...(await jobs.pay({ ...paying, lamports: baseUnits(amount, 9) })) };
    return { ...shown, ...(await jobs.payTokens({ ...paying, mint, amount: baseUnits(amount, job.decimals) })) };
  },

  // payElsewhere opens an account of the owner that is not the associated one, with freshly minted tokens or wrapped coin.
  async payElsewhere(job) {
    const { connection, payer } = wallet(job);
    const [mint, program, account] = [new PublicKey(job.mint), programOf(job.program), Keypair.generate()];
    const wraps = mint.equals(spl.NATIVE_MINT);
    const lamports = (await connection.getMinimumBalanceForRentExemption(spl.ACCOUNT_SIZE)) + (wraps ? Number(job.amount) : 0);
    const list = [
      SystemProgram.createAccount({ fromPubkey: payer.publicKey, newAccountPubkey: account.publicKey, space: spl.ACCOUNT_SIZE, lamports, programId: program }),
      spl.createInitializeAccount3Instruction(account.publicKey, mint, new PublicKey(job.to), program),
    ];
    if (!wraps) list.push(spl.createMintToInstruction(mint, account.publicKey, payer.publicKey, BigInt(job.amount), [], program));
    return { signature: await send(job, list, [account]), account: account.publicKey.toBase58() };
  },

  // nonce opens a nonce account of an authority.
  async nonce(job) {
    const { connection, payer } = wallet(job);
    const account = Keypair.generate();
    const lamports = await connection.getMinimumBalanceForRentExemption(web3.NONCE_ACCOUNT_LENGTH);
    const create = SystemProgram.createNonceAccount({
      fromPubkey: payer.publicKey, noncePubkey: account.publicKey, authorizedPubkey: new PublicKey(job.to), lamports,
    });
    return { signature: await send(job, create.instructions, [account]), account: account.publicKey.toBase58() };
  },

  async mint(job) {
    const { connection, payer } = wallet(job);
    const program = programOf(job.program);
    const mint = Keypair.generate();
    const size = job.fee ? spl.getMintLen([spl.ExtensionType.TransferFeeConfig]) : spl.MINT_SIZE;
    const lamports = await connection.getMinimumBalanceForRentExemption(size);
    const list = [SystemProgram.createAccount({ fromPubkey: payer.publicKey, newAccountPubkey: mint.publicKey, space: size, lamports, programId: program })];
    if (job.fee) list.push(spl.createInitializeTransferFeeConfigInstruction(mint.publicKey, payer.publicKey, payer.publicKey, job.fee.bps, BigInt(job.fee.most), program));
    list.push(spl.createInitializeMint2Instruction(mint.publicKey, job.decimals, payer.publicKey, null, program));
    await send(job, list, [mint]);
    return { mint: mint.publicKey.toBase58() };
  },

  async pay(job) {
    const to = new PublicKey(job.to);
    const transfer = SystemProgram.transfer({ fromPubkey: wallet(job).payer.publicKey, toPubkey: to, lamports: BigInt(job.lamports) });
    return inForm(job, [withReferences(job, transfer)], [to]);
  },

  async payTokens(job) {
    const { connection, payer } = wallet(job);
    const [program, mint, owner] = [programOf(job.program), new PublicKey(job.mint), new PublicKey(job.to)];
    const own = spl.getAssociatedTokenAddressSync(mint, payer.publicKey, false, program);
    const account = spl.getAssociatedTokenAddressSync(mint, owner, false, program);
    const info = await connection.getAccountInfo(mint);
    const { decimals } = spl.unpackMint(mint, info, program);
    await send(job, [
      spl.createAssociatedTokenAccountIdempotentInstruction(payer.publicKey, own, payer.publicKey, mint, program),
      spl.createMintToInstruction(mint, own, payer.publicKey, BigInt(job.amount), [], program),
      SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: Keypair.generate().publicKey, lamports: 1_000_000 }), // never the same twice
    ]);
    const list = [
      spl.createAssociatedTokenAccountIdempotentInstruction(payer.publicKey, account, owner, mint, program),
      withReferences(job, spl.createTransferCheckedInstruction(own, mint, account, payer.publicKey, BigInt(job.amount), decimals, [], program)),
    ];
    return { ...(await inForm(job, list, [account, owner, mint])), payer: payer.publicKey.toBase58(), account: account.toBase58() };
  },

  async read(job) {
    const tx = Transaction.from(Buffer.from(job.raw, 'base64'));
    const describe = (ix) => {
      const program = ix.programId.toBase58();
      if (ix.programId.equals(SystemProgram.programId)) {
        const d = web3.SystemInstruction.decodeTransfer(ix);
        return { program, kind: web3.SystemInstruction.decodeInstructionType(ix), from: d.fromPubkey.toBase58(), to: d.toPubkey.toBase58(), amount: d.lamports.toString() };
      }
      if (ix.programId.equals(web3.ComputeBudgetProgram.programId)) return { program, kind: web3.ComputeBudgetInstruction.decodeInstructionType(ix) };
      if (ix.programId.equals(spl.ASSOCIATED_TOKEN_PROGRAM_ID)) return { program, kind: ix.data[0] === 1 ? 'CreateIdempotent' : 'other', to: ix.keys[1].pubkey.toBase58() };
      if (ix.data[0] === spl.TokenInstruction.TransferFeeExtension && ix.data[1] === 1) {
        const d = spl.decodeTransferCheckedWithFeeInstruction(ix, ix.programId);
        return { program, kind: 'TransferCheckedWithFee', from: d.keys.source.pubkey.toBase58(), to: d.keys.destination.pubkey.toBase58(), amount: d.data.amount.toString(), fee: d.data.fee.toString() };
      }
      if (ix.data[0] === spl.TokenInstruction.TransferFeeExtension) return { program, kind: 'HarvestWithheldTokensToMint', mint: spl.decodeHarvestWithheldTokensToMintInstruction(ix, ix.programId).keys.mint.pubkey.toBase58() };
      if (ix.data[0] === spl.TokenInstruction.CloseAccount) {
        const d = spl.decodeCloseAccountInstruction(ix, ix.programId);
        return { program, kind: 'CloseAccount', from: d.keys.account.pubkey.toBase58(), to: d.keys.destination.pubkey.toBase58() };
      }
      const d = spl.decodeTransferCheckedInstruction(ix, ix.programId);
      return { program, kind: 'TransferChecked', from: d.keys.source.pubkey.toBase58(), to: d.keys.destination.pubkey.toBase58(), amount: d.data.amount.toString() };
    };
    return { valid: tx.verifySignatures(), payer: tx.feePayer.toBase58(), signature: bs58.encode(tx.signature), instructions: tx.instructions.map(describe) };
  },

  async addresses(job) {
    const mint = new PublicKey(job.mint);
    return job.keys.map((hex) => {
      const key = new PublicKey(Buffer.from(hex, 'hex'));
      const account = (program) => spl.getAssociatedTokenAddressSync(mint, key, false, program).toBase58();
      return { address: key.toBase58(), token: account(spl.TOKEN_PROGRAM_ID), token2022: account(spl.TOKEN_2022_PROGRAM_ID) };
    });
  },
};

let text = '';
process.stdin.on('data', (chunk) => { text += chunk; }).on('end', async () => {
  try {
    const asked = JSON.parse(text);
    const answers = [];
    for (const job of [asked].flat()) answers.push(await jobs[job.do](job));
    process.stdout.write(JSON.stringify(Array.isArray(asked) ? answers : answers[0]));
  } catch (e) {
    console.error(e);
    process.exitCode = 1;
  }
});
