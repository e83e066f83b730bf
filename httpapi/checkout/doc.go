// Package checkout is the hosted page on which a payer pays an invoice: choose a coin and a
// network, send the amount that is shown to the address that is shown, watch it confirm.
//
//	GET  /checkout/{id}              the page
//	GET  /checkout/{id}/state.json   the State that the page is made from
//	GET  /checkout/{id}/events       server-sent events: "state" with a State whenever it changes
//	POST /checkout/{id}/select       option=<id>: choose an option, or take a new quote for it
//	POST /checkout/{id}/hint         tx_hash=<hash>: "I have paid"; looked up on the network
//	POST /checkout/{id}/simulate     outcome=<outcome>: test mode only
//	GET  /checkout/{id}/logo         the merchant's picture
//	GET  /checkout/assets/…          stylesheet, script and icon, named by their bytes
//
// The page is rendered on the server and works without scripts; one small script makes it live. It
// is made in three steps, the first two pure: facts (facts.go reads them) make a State (state.go),
// a State and a language make a View (view.go), a View fills the templates in web/. Who wants
// another look replaces files (Options.Files); who wants another page builds on state.json and the
// same forms, which answer JSON to those who accept nothing else (docs/checkout.md).
//
// The id of an invoice is all that it takes to see and pay it. So nothing that only merchant and
// payer should know is ever part of a State: no e-mail address, no order id, no metadata.
//
// The package sits on top of the house, beside httpapi: it asks the engine (adapter.go) and is
// asked by nobody.
package checkout
