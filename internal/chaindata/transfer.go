package chaindata

// LogIndex is the Transfer.Index of the first log of a transaction's receipt; the k-th has LogIndex + k, where k
// counts from 0.
const LogIndex = 1

// InternalIndex is the Transfer.Index of a transaction's first internal transfer: coin that a contract
// sent, which shows in traces and balances and not in blocks.
const InternalIndex = 1 << 20 // spec D3.6
