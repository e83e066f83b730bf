package chain

// Destination is where money may be sent: an address in canonical form, on one network.
type Destination struct {
	// Network is a slug.
	Network string  `json:"network"`
	Address Address `json:"address"`
}

// String returns "ethereum/0x…".
func (d Destination) String() string { return d.Network + "/" + string(d.Address) }
