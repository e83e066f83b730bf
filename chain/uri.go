package chain

// URIBuilder writes payment URIs.
type URIBuilder interface { // spec D10.2
	// PaymentURI returns what a QR code should hold: BIP-21, EIP-681, Solana Pay, or the bare address.
	PaymentURI(to Address, asset Asset, amount Amount) string
}

// RequestURIBuilder is a URIBuilder whose URIs also say who is paid for what.
type RequestURIBuilder interface {
	URIBuilder
	// RequestURI returns PaymentURI with the parameters of a request, of which empty ones are left out. They change
	// neither who is paid nor how much, and a payment without them counts alike.
	RequestURI(to Address, asset Asset, amount Amount, request PaymentRequest) string
}

// PaymentRequest says who is paid for what. Wallets show its texts to the payer.
type PaymentRequest struct {
	// ID identifies the request, such as an invoice's id. A driver whose payers name a reference in their
	// transactions derives it from ID.
	ID string
	// Label names who is paid.
	Label string
	// Message says what is paid for.
	Message string
}
