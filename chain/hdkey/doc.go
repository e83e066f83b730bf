// Package hdkey is a chain.Signer that derives every key from one seed in memory. It suits tests and
// small shops, and is the model for a signer over a KMS or an HSM. The engine does not import it: a
// host passes a Signer in its configuration, and the engine sends it the drivers' signing requests.
//
// The seed comes from a BIP-39 mnemonic (New) or from another source (FromSeed). secp256k1 keys are
// derived by BIP-32, Ed25519 keys by SLIP-10. The path of a chain.KeyRef is given by the table below.
// The table never changes: a changed path is a lost key.
//
//	family           path                              first path of each account
//	evm              m/44'/60'/account'/0/index        m/44'/60'/0'/0/0
//	bitcoin          m/84'/coin'/account'/0/index      m/84'/0'/0'/0/0, test m/84'/1'/1'/0/0
//	  WithTaproot    m/86'/coin'/account'/0/index      m/86'/0'/0'/0/0, test m/86'/1'/1'/0/0
//	tron             m/44'/195'/account'/0/index       m/44'/195'/0'/0/0
//	solana           m/44'/501'/n'/0'                  m/44'/501'/0'/0'
//	sim              m/44'/1'/account'/0/index         m/44'/1'/0'/0/0
//
//	account: 0 live deposit, 1 test deposit, 2 live master, 3 test master
//	coin:    0 live, 1 test (SLIP-44)
//	n:       account·2^29 + index
//	index:   up to 2^31−1, on Solana up to 2^29−1
//
// Live and test keys, and deposit and master keys, never share a path, even where one address is
// valid on live and test networks.
//
// # Recovery
//
// A common wallet with the mnemonic alone does not find the money: indexes have gaps wider than any gap
// limit, and master wallets are not in the first accounts. Signer.Descriptors returns the Bitcoin keys for a
// wallet that accepts output descriptors, which was tried on bitcoind. Signer.Path returns the path of every
// other key. docs/recovery.md describes the steps, and what was tried.
//
// # Security
//
// A Signer shows no secret when it is printed, logged or marshalled, and no error holds one. The
// seed is dropped once the parent keys are derived, and single keys are wiped after use, as far as
// Go allows. It does not protect against:
//
//   - a reader of the process's memory (core dump, debugger, heap profile), who has every key:
//     parents stay in ordinary memory, which may be swapped, and a mnemonic string cannot be wiped
//   - copies that the runtime and the libraries leave in memory
//   - an attacker who measures the machine: secp256k1 signing has no side-channel hardening
//
// Where that is not enough, implement chain.Signer over a machine that keeps its keys.
package hdkey
