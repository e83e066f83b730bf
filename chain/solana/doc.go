// Package solana is the driver for Solana: SOL, SPL Token and Token-2022.
//
// A Driver reads full nodes over JSON-RPC. New returns one that sees payments by asking for the
// signatures of the addresses at hand (AddressScanner), which every provider serves; NewBlockDriver
// returns one that reads whole blocks (BlockScanner), for a node of one's own. All the rest is the
// same.
//
// Heights are block heights, as getBlockHeight counts them: a slot without a block has no height,
// so blocks are linked without a gap, and Signed.ValidToHeight is what the network calls the last
// valid block height. The tip is the newest block of commitment "confirmed", which is also the safe
// block; the final block is that of commitment "finalized".
//
// What a transaction moved is read from its balances before and after, never from its instructions,
// so a transfer fee is not counted and a payment by a program is. Tokens belong to the owner's
// associated token account and are reported with the owner's address; a token account of ours at
// any other address is not ours to credit.
package solana
