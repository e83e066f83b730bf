// compile.js OUT — compiles Tokens.sol with the pinned compiler into OUT/<Contract>.json: {"abi": [...], "bytecode": "0x..."}.
// The compiler and OpenZeppelin's sources come from the fetched packages, which NODE_PATH names. Equal input gives equal bytes.
'use strict';
const fs = require('fs');
const path = require('path');
const solc = require('solc');

const out = process.argv[2];
if (!out) {
  console.error('usage: compile.js OUT');
  process.exit(2);
}
const input = {
  language: 'Solidity',
  sources: { 'Tokens.sol': { content: fs.readFileSync(path.join(__dirname, 'Tokens.sol'), 'utf8') } },
  settings: {
    optimizer: { enabled: true, runs: 200 },
    evmVersion: 'paris', // the oldest that the chains in question still run: no PUSH0
    metadata: { appendCBOR: false, bytecodeHash: 'none' }, // no hash of comments and paths at the end of the bytecode
    outputSelection: { 'Tokens.sol': { '*': ['abi', 'evm.bytecode.object'] } },
  },
};
const readImport = (name) => ({ contents: fs.readFileSync(require.resolve(name), 'utf8') });
const result = JSON.parse(solc.compile(JSON.stringify(input), { import: readImport }));
for (const problem of result.errors || []) {
  console.error(problem.formattedMessage);
}
if ((result.errors || []).length > 0) {
  process.exit(1); // warnings too: the fixtures are to compile cleanly
}
for (const [name, contract] of Object.entries(result.contracts['Tokens.sol'])) {
  const bytecode = contract.evm.bytecode.object;
  if (bytecode === '') {
    continue; // abstract
  }
  const text = JSON.stringify({ abi: contract.abi, bytecode: '0x' + bytecode });
  fs.writeFileSync(path.join(out, name + '.json'), text + '\n');
  console.log(`${name}: ${bytecode.length / 2} bytes`);
}
