// decode.js reads [{"type", "raw_data_hex", "signature"}] from standard input and writes what tronweb reads in each transaction: its id,
// its fields, and who signed it. Nothing is asked of a network.
'use strict';
const { TronWeb, utils } = require('tronweb');

const address = (hex) => TronWeb.address.fromHex(hex);

function decode({ type, raw_data_hex, signature }) {
  const tx = utils.deserializeTx.deserializeTransaction(type, raw_data_hex);
  const value = tx.contract[0].parameter.value;
  const id = utils.ethersUtils.sha256('0x' + raw_data_hex).slice(2);
  const out = {
    tx_id: id,
    signer: address(utils.crypto.ecRecover(id, signature)),
    type: tx.contract[0].type,
    permission: tx.contract[0].Permission_id || 0,
    from: address(value.owner_address),
    to: address(value.to_address || value.contract_address || value.receiver_address),
    amount: String(value.amount || value.balance || 0),
    resource: value.resource || '',
    memo: Buffer.from(tx.data || '', 'hex').toString('utf8'),
    fee_limit: tx.fee_limit || 0,
    expiration: tx.expiration,
    timestamp: tx.timestamp,
    ref_block: (tx.ref_block_bytes + tx.ref_block_hash).toLowerCase(),
  };
  if (value.data) {
    if (value.data.slice(0, 8).toLowerCase() !== 'a9059cbb') throw new Error('not a transfer: ' + value.data);
    const [payee, amount] = new utils.ethersUtils.AbiCoder().decode(['address', 'uint256'], '0x' + value.data.slice(8));
    out.payee = address(payee.replace(/^0x/, '41'));
    out.amount = String(amount);
  }
  return out;
}

let input = '';
process.stdin.on('data', (part) => (input += part));
process.stdin.on('end', () => process.stdout.write(JSON.stringify(JSON.parse(input).map(decode)) + '\n'));
