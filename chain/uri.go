package chain

// URIBuilder writes payment URIs.
type URIBuilder interface { // spec D10.2
	// PaymentURI returns what a QR code should hold: BIP-21, EIP-681, Solana Pay, or the bare address.
	PaymentURI(to Address, asset Asset, amount Amount) string
}
