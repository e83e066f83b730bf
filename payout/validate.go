package payout

import (
	"strings"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// The bounds of specification 4.6 and decisions part 6. Texts count characters.
const (
	maxMemo         = 200
	maxReason       = 200
	maxMetadata     = 50
	maxMetadataKey  = 40
	maxMetadataText = 500
)

// checkText refuses text that is too long, and text that no database can store.
func checkText(param, text string, limit int) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fault.Param(param, "parameter_invalid", "%s must be UTF-8 without NUL characters", param)
	}

	if wire.HasBidiControl(text) {
		return fault.Param(
			param, "parameter_invalid", "%s must have no characters that turn the direction of others", param,
		)
	}

	if utf8.RuneCountInString(text) > limit {
		return fault.Param(param, "parameter_invalid", "%s has more than %d characters", param, limit)
	}

	return nil
}

func checkMetadata(m map[string]string) error {
	if len(m) > maxMetadata {
		return fault.Param("metadata", "parameter_invalid", "metadata has more than %d keys", maxMetadata)
	}

	for k, v := range m {
		if k == "" {
			return fault.Param(
				"metadata", "parameter_invalid", "a metadata key has 1 to %d characters",
				maxMetadataKey,
			)
		}

		if err := checkText("metadata", k, maxMetadataKey); err != nil {
			return err
		}

		if err := checkText("metadata", v, maxMetadataText); err != nil {
			return err
		}
	}

	return nil
}

// destination parses an address and checks that it is one of the allowed destinations; nil: any.
func destination(
	driver chain.Driver,
	address string,
	only []chain.Destination,
) (chain.Address, error) { // spec 4.6.3
	to, err := driver.ParseAddress(address)
	if err != nil {
		return "", fault.Wrap(
			err, fault.Invalid, "destination_invalid", // spec D5.17
			"the destination is not an address of network %s",
			driver.Network().Slug,
		).
			WithParam("destination")
	}

	if d := (chain.Destination{Network: driver.Network().Slug, Address: to}); !chaindata.AllowsDestination(
		only,
		d,
	) {
		return "", fault.New(
			fault.Forbidden, "destination_not_allowed",
			"%s is not among the payout destinations of this key and its account",
			d,
		)
	}

	return to, nil
}
