// Package hdkey is a chain.Signer that derives every key from one seed in memory: the simplest signer
// there is, for tests, for small shops, and as the model for a signer that asks a KMS or an HSM.
//
// The seed comes from a BIP-39 mnemonic (New) or from anywhere else (FromSeed). Keys of secp256k1 are
// derived by BIP-32, keys of Ed25519 by SLIP-10. A chain.KeyRef is turned into a path by the table below.
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
//
// So live and test keys, and deposit and master keys, never share a path, even on families where one
// address is valid on live and test networks alike. Live deposits are account 0, where a common wallet
// looks first: a person with the mnemonic and such a wallet can reach the money without this library.
// A common Solana wallet tries the values of n one by one from 0, so a master key there has to be
// named by its path (Signer.Path). The index goes up to 2^31−1, and up to 2^29−1 on Solana.
//
// # What protects the keys, and what does not
//
// A Signer never shows a secret when it is printed, logged or marshalled, and no error holds one. The
// seed is forgotten once the parents of all branches are derived, and single keys are wiped after use,
// as far as Go allows. That is all: the parents stay in ordinary memory for the life of the process, a
// mnemonic that came as a string cannot be wiped, the runtime and the libraries below may leave copies
// behind, pages are not locked against swapping, and whoever reads the memory of the process (a core
// dump, a debugger, a heap profile) has every key. secp256k1 signing is not hardened against an attacker
// who measures the machine it runs on. Where that is not enough, implement chain.Signer over a machine
// that keeps its keys.
package hdkey
