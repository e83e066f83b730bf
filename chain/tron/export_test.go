package tron

import "encoding/json"

// HeaderID returns the id of the block of a raw header in JSON.
func HeaderID(text []byte) (string, error) {
	var header headerJSON

	err := json.Unmarshal(text, &header)
	id, _ := header.id()

	return id, err
}
