package evm

// ListRoot is listRoot, for nodes that tests make up.
var ListRoot = listRoot

// Driver is the driver with every ability.
type Driver = driver

// NewDriver returns it.
func NewDriver(c Config) (*Driver, error) { return newDriver(c) }
