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
let ledger;
let served;

// What tests ask of the front itself: how far each of the backends behind the path /balanced is behind, in blocks, one answering after
// the other; how many calls of a method are served a second; and how many calls there were; and whether --slot-ms
// closes no slots for now.
const front = {};

// begin starts a new chain.
function begin(finality) {
  const machine = new Machine();
  ledger = new Ledger(machine, { finality, slotTime: Number(values['slot-ms']) });
  served = methods(machine, ledger);
  Object.assign(front, { lags: [0], next: 0, limits: {}, served: {}, calls: {}, held: false });
}

begin(Number(values.finality));

const controls = {
  svm_begin: (finality) => { begin(finality); return finality; },
  svm_backends: (lags) => { front.lags = lags; return lags; },
  svm_limit: (method, perSecond) => { front.limits[method] = perSecond; return perSecond; },
  svm_hold: (held) => { front.held = held; return held; },
  svm_calls: () => { const { calls } = front; front.calls = {}; return calls; },
};

// limited counts a call and says whether it is over the limit of its method.
function limited(method) {
  front.calls[method] = (front.calls[method] || 0) + 1;
  if (!(method in front.limits)) return false;
  const second = Math.floor(Date.now() / 1000);
  if (!front.served[method] || front.served[method].second !== second) front.served[method] = { second, calls: 0 };
  return ++front.served[method].calls > front.limits[method];
}

// serve answers a call from the backend whose turn it is. Controls act on the ledger itself.
function serve(method, params, balanced) {
  if (Object.hasOwn(controls, method)) return controls[method](...params);
  if (!Object.hasOwn(served, method)) throw refuse(-32601, 'Method not found');
  if (balanced) ledger.lag = front.lags[front.next++ % front.lags.length];
  try {
    return served[method](...params.map((p) => (p === null ? undefined : p)));
  } finally {
    ledger.lag = 0;
  }
}

// answer makes the JSON of one call. Amounts are whole 64-bit numbers, which JSON.stringify cannot write, so they pass as marked text.
function answer(request, balanced) {
  let body;
  try {
    if (!request) throw refuse(-32600, 'Invalid request');
    body = { jsonrpc: '2.0', result: serve(request.method, request.params || [], balanced), id: request.id };
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
    if ([calls].flat().some((call) => limited(call && call.method))) {
      response.writeHead(429, { 'retry-after': '1' }).end('{"jsonrpc":"2.0","error":{"code":429,"message":"Too many requests for a specific RPC call"},"id":1}');
      return;
    }
    const balanced = request.url === '/balanced';
    response.end(Array.isArray(calls) ? `[${calls.map((c) => answer(c, balanced)).join(',')}]` : answer(calls, balanced));
  });
});

server.listen(0, '127.0.0.1', () => console.log(`Listening on 127.0.0.1:${server.address().port}`));
if (Number(values['slot-ms']) > 0) setInterval(() => front.held || ledger.close(), Number(values['slot-ms']));
process.on('SIGTERM', () => process.exit(0));
