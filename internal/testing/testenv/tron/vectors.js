// vectors.js writes the golden vectors of chain/tron to standard output: what tronweb makes of fixed keys, blocks and payments.
// Nothing is asked of a network: the node's address is one where nobody listens. Equal packages give equal bytes.
'use strict';
const { TronWeb, utils } = require('tronweb');

// Keys and accounts that the whole world knows: the development mnemonic of the Ethereum tools, at Tron's own path.
const mnemonic = 'test test test test test test test test test test test junk';
const usdt = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';

const blocks = [
  { ref_block_bytes: '1f2e', ref_block_hash: '0011223344556677', expiration: 1700000060000, timestamp: 1700000000000 },
  { ref_block_bytes: '0000', ref_block_hash: 'ffeeddccbbaa9988', expiration: 1893456000000, timestamp: 1893455940123 },
];

async function main() {
  const wallets = [0, 1, 2].map((i) => TronWeb.fromMnemonic(mnemonic, `m/44'/195'/0'/0/${i}`));
  const keys = wallets.map((w) => w.privateKey.replace(/^0x/, ''));
  const tronweb = new TronWeb({ fullHost: 'http://127.0.0.1:1', privateKey: keys[0] });
  const builder = tronweb.transactionBuilder;
  const address = (i) => wallets[i].address;

  const addresses = wallets.map((w, i) => ({
    path: `m/44'/195'/0'/0/${i}`,
    private_key: keys[i],
    public_key: w.publicKey.replace(/^0x/, ''),
    base58: w.address,
    hex: TronWeb.address.toHex(w.address),
  }));
  for (const base58 of [usdt, 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8', 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb']) {
    addresses.push({ base58, hex: TronWeb.address.toHex(base58) });
  }

  const transfer = (to, amount) => [{ type: 'address', value: to }, { type: 'uint256', value: amount }];
  const call = async (from, to, amount, feeLimit, blockHeader) =>
    (await builder.triggerSmartContract(usdt, 'transfer(address,uint256)', { feeLimit, callValue: 0, txLocal: true, blockHeader }, transfer(to, amount), from)).transaction;

  const cases = [];
  for (const blockHeader of blocks) {
    for (const amount of [1, 1000000, 123456789012345]) {
      cases.push({ name: 'trx', from: 0, to: address(1), amount: String(amount), block: blockHeader, tx: await builder.sendTrx(address(1), amount, address(0), { blockHeader }) });
    }
    for (const amount of ['1', '25000000', '1766847064778384329583297500742918515827483896875618958121606201292619775']) {
      cases.push({ name: 'trc20', from: 1, to: address(2), amount, fee_limit: 100000000, block: blockHeader, tx: await call(address(1), address(2), amount, 100000000, blockHeader) });
    }
    for (const amount of [1000000, 7234500000]) {
      cases.push({ name: 'delegate', from: 0, to: address(2), amount: String(amount), block: blockHeader, tx: await builder.delegateResource(amount, address(2), 'ENERGY', address(0), false, 0, { blockHeader }) });
      cases.push({ name: 'undelegate', from: 0, to: address(2), amount: String(amount), block: blockHeader, tx: await builder.undelegateResource(amount, address(2), 'ENERGY', address(0), { blockHeader }) });
    }
    const plain = await builder.sendTrx(address(2), 5000000, address(0), { blockHeader });
    const memo = 'invoice 42 ✓';
    cases.push({ name: 'memo', from: 0, to: address(2), amount: '5000000', memo, block: blockHeader, tx: await builder.addUpdateData(plain, memo, 'utf8', { txLocal: true }) });
  }

  const transactions = [];
  for (const c of cases) {
    const { tx, from, ...rest } = c;
    const signed = await tronweb.trx.sign(structuredClone(tx), keys[from]);
    transactions.push({
      ...rest, from: address(from), private_key: keys[from], raw_data_hex: tx.raw_data_hex, tx_id: tx.txID, signature: signed.signature[0],
      signer: TronWeb.address.fromHex(utils.crypto.ecRecover(tx.txID, signed.signature[0])),
    });
  }
  process.stdout.write(JSON.stringify({ source: 'npm tronweb ' + TronWeb.version, mnemonic, contract: usdt, addresses, transactions }, null, 1) + '\n');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
