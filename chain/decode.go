package chain

// Decoded is what an unsigned transaction does, read from its bytes alone.
type Decoded struct {
	// Outputs are all that it pays, change included, in the order of the bytes.
	Outputs []Output
	// MaxFee is the most that its bytes let it cost, in base units of the native coin. What a network charges
	// beyond any bound in the bytes is left out, such as the rent of an account that is paid first.
	MaxFee Amount
	// Digests are what its signatures sign, in the order of Unsigned.Payloads.
	Digests [][]byte
	// Spends are what it uses up: each output that it spends, a DurableNonce, or the nonce of the first of
	// Unsigned.Payloads. By is empty, and so is the Sender of the latter, which bytes need not name. Two transactions
	// of one sender that share a Spend exclude each other. Transactions that only expire (Solana, Tron) have none.
	Spends []Spend
}

// Decoder is a Sender that decodes what it built. It is what a signer's policy, and the engine before every
// signature, compare with the Intent: they need not trust the records or the process that built the bytes.
type Decoder interface {
	// Decode reads Unsigned.Raw and recomputes every digest from it. It does no I/O and uses nothing but the
	// bytes and the driver's configuration. Bytes that it cannot account for wholly, such as a call of an
	// unknown contract, are fault.Invalid with code unsigned_invalid.
	Decode(raw []byte) (Decoded, error)
}
