package tron

import "encoding/json"

// HeaderID returns the id of the block of a raw header in JSON.
func HeaderID(text []byte) (string, error) {
	var header headerJSON

	err := json.Unmarshal(text, &header)
	id, _ := header.id()

	return id, err
}

// Driver is the driver with every ability.
type Driver = driver

// NewDriver returns it.
func NewDriver(c Config) (*Driver, error) { return newDriver(c) }
