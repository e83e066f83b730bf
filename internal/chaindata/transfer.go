package chaindata

// LogIndex is the Transfer.Index of the first log of a transaction's receipt. The k-th log, counted from 0,
// has LogIndex + k.
const LogIndex = 1

// InternalIndex is the Transfer.Index of a transaction's first internal transfer: coin that a contract sent.
// Traces and balances show it, blocks do not.
const InternalIndex = 1 << 20 // spec D3.6
