#!/usr/bin/env node
'use strict';

// A Solana node for tests: JSON-RPC over HTTP in front of the real virtual machine. It listens on a free port of 127.0.0.1, which it
// names on standard output, and ends when it is told to.
//
//   node server.js [--slot-ms N] [--finality N]
//
// --slot-ms closes a slot every N milliseconds; without it slots are closed by the control svm_mine only.
// --finality is how many blocks on top of a block make it final, by default 31.

const http = require('http');
const { parseArgs } = require('util');
const { Machine } = require('./machine.js');
const { Ledger, refuse } = require('./ledger.js');
const { methods } = require('./methods.js');

const { values } = parseArgs({ options: { 'slot-ms': { type: 'string', default: '0' }, finality: { type: 'string', default: '31' } } });
const machine = new Machine();
const ledger = new Ledger(machine, { finality: Number(values.finality) });
const served = methods(machine, ledger);

// answer makes the JSON of one call. Amounts are whole 64-bit numbers, which JSON.stringify cannot write, so they pass as marked text.
function answer(request) {
  let body;
  try {
    if (!request || !Object.hasOwn(served, request.method)) throw refuse(-32601, 'Method not found');
    body = { jsonrpc: '2.0', result: served[request.method](...(request.params || [])), id: request.id };
  } catch (e) {
    const { code = -32603, message, data } = e;
    body = { jsonrpc: '2.0', error: { code, message, ...(data === undefined ? {} : { data }) }, id: request ? request.id : null };
  }
  return JSON.stringify(body, (_, v) => (typeof v === 'bigint' ? `\u0001${v}\u0001` : v)).replace(/"\\u0001(\d+)\\u0001"/g, '$1');
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
    let calls;
    try {
      calls = JSON.parse(Buffer.concat(chunks));
    } catch {
      response.writeHead(400).end('not JSON\n');
      return;
    }
    response.setHeader('content-type', 'application/json');
    response.end(Array.isArray(calls) ? `[${calls.map(answer).join(',')}]` : answer(calls));
  });
});

server.listen(0, '127.0.0.1', () => console.log(`Listening on 127.0.0.1:${server.address().port}`));
if (Number(values['slot-ms']) > 0) setInterval(() => ledger.close(), Number(values['slot-ms']));
process.on('SIGTERM', () => process.exit(0));
