package systemtest

import (
	"strings"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// bareDriver is a driver that can only read blocks: it makes no addresses and sends nothing.
type bareDriver struct {
	chain.Driver
	chain.BlockScanner
}

// at returns the client of another service over the same store.
func (c *client) at(s *service, network payments.ChainDriver, change func(*payments.Config)) *client {
	c.t.Helper()

	other := *c
	other.base = serve(c.t, s.open(c.t, network, change))
	other.read()

	return &other
}

// refusedByOthers provokes what services refuse that can do less, or that may do less.
func (c *client) refusedByOthers(s *service) {
	c.t.Helper()

	const deposit = `{"network":"simnet","name":"customer 8"}`

	payable, selects := c.made(`{"price":{"currency":"EUR","amount":"5"},` + twoOptions + `}`)

	bare := c.at(s, bareDriver{s.network, s.network}, nil)
	for path, body := range map[string]string{
		"/v1/invoices":          cryptoBody,
		"/v1/deposit_addresses": deposit,
		selects[0]:              "",
		c.simulation(payable):   `{"outcome":"paid"}`,
	} {
		bare.refuse(422, "address_unsupported", request{method: "POST", path: path, body: body})
	}

	bare.refuse(422, "send_unsupported", s.paying(c, "bare"))

	few := c.at(s, s.network, func(config *payments.Config) { config.Limits.DepositAddresses = 1 })
	c.post("/v1/deposit_addresses", deposit)
	few.refuse(
		409, "deposit_address_limit_exceeded",
		request{method: "POST", path: "/v1/deposit_addresses", body: deposit},
	)

	// A coin of so many decimals that no transfer holds the price.
	fine := sim.DefaultNetwork()
	fine.Assets[0].Decimals = 77

	wide := c.at(s, sim.New(sim.Config{Network: fine}), nil)
	payable, selects = wide.made(`{"price":{"currency":"EUR","amount":"50000"},` + twoOptions + `}`)

	for path, body := range map[string]string{
		"/v1/invoices":        strings.ReplaceAll(invoiceBody, "49.90", "50000"),
		selects[0]:            "",
		c.simulation(payable): `{"outcome":"paid"}`,
	} {
		wide.refuse(422, "amount_too_large", request{method: "POST", path: path, body: body})
	}
}

// refundWithoutSending asks a service that cannot send for a refund of money that really came.
func (c *client) refundWithoutSending(s *service) {
	c.t.Helper()

	refund := c.refunding(s, "invoice_id", c.paid(s), "1000", "bare-refund")
	c.at(s, bareDriver{s.network, s.network}, nil).refuse(422, "send_unsupported", refund)
}

// simulation returns the path that simulates a payment of an invoice.
func (c *client) simulation(invoice string) string {
	return "/v1/test" + strings.TrimPrefix(invoice, "/v1") + "/simulate_payment"
}
