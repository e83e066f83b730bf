package chain

// Transfer is one transfer of one enabled asset to one address.
//
// (TxHash, Index) identifies it for ever: the index is the same from every source and through every
// reorganisation. EVM and Tron: 0 is the transaction's own value, 1+k the k-th log of its receipt,
// 2^20+k its k-th internal transfer; one of coin that logs (EIP-7708) has the index of its log. Bitcoin: the output's
// index; Solana: the index of the receiving account among the resolved account keys.
type Transfer struct { // spec D3.5
	TxHash  string
	Index   uint32
	From    Address // empty when unknown or when there are several senders
	To      Address
	AssetID string
	Amount  Amount // what arrived, in base units
	// Locked is the number of confirmations before it can be spent, as of block rewards; 0 for none.
	Locked uint64
}
