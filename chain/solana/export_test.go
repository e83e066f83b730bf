package solana

// Driver is the driver with every ability.
type Driver = driver

// NewDriver returns it.
func NewDriver(c Config) (*Driver, error) { return newDriver(c) }

// BlockDriver is the driver that reads whole blocks, with every ability.
type BlockDriver = blockDriver

// NewBlockDriver returns it.
func NewBlockDriver(c Config) (*BlockDriver, error) {
	d, err := newDriver(c)
	if err != nil {
		return nil, err
	}

	return &blockDriver{driver: d}, nil
}

// Histories returns the part of the driver that reads histories alone.
func (d *blockDriver) Histories() *Driver { return d.driver }

// PriceOf returns what a transaction offers, in millionths of a lamport per compute unit.
func PriceOf(raw []byte) uint64 { return priceOf(raw) }
