package httpapi

import (
	"github.com/seed-8ee7f392/payments/fault"
)

// checkPermission returns fault.Forbidden when the key may not use the operation.
func (c *call) checkPermission() error {
	switch {
	case c.key.Publishable && c.op.access != anyKey: // spec 5.3
		return fault.New(
			fault.Forbidden,
			"publishable_key_not_allowed",
			"a publishable key only reads networks, assets and rates: use a secret key, and only on your server",
		)
	case c.op.scope != "" && !c.key.Publishable && !c.key.Allows(c.op.scope):
		return fault.New(
			fault.Forbidden, "scope_missing",
			"the API key %s does not have the scope %s: create one that has it",
			c.key.ID, c.op.scope,
		)
	case c.op.testOnly && c.owner.Livemode:
		// spec 4.5.1
		return fault.New(fault.Forbidden, "test_mode_only", "this works on test data only: use a test key")
	}

	return nil
}
