package invoice

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// Settings are the settings of an account that this package needs.
type Settings struct {
	ToleranceBPS int
	AcceptLate   bool
	// Assets are the ids of the assets enabled for the account; nil: all.
	Assets []string
}

// Filter selects invoices for a list.
type Filter struct { // spec 4.1.6
	Owner    event.Owner
	Statuses []Status
	// OrderID keeps invoices with exactly this order id: upper and lower case differ.
	OrderID string
	// Networks keeps invoices with an option on one of them.
	Networks []string
	// Q matches the beginning of the id, the order id or the customer's e-mail, without case.
	Q string // spec 4.1.9, D1.12
	// CreatedAfter is inclusive, CreatedBefore exclusive; zero: open.
	CreatedAfter, CreatedBefore time.Time // spec D1.14
	After                       string    // id to continue after, exclusive; newest first
	Limit                       int
}

// PaymentFilter selects payments for a list.
type PaymentFilter struct {
	Owner                         event.Owner
	Statuses                      []PaymentStatus
	Networks                      []string
	InvoiceID, DepositAddressID   string
	Q                             string    // the beginning of the hash, the address or the id, without case
	DetectedAfter, DetectedBefore time.Time // inclusive, exclusive; zero: open
	After                         string
	Limit                         int
}

// DepositFilter selects deposit addresses for a list.
type DepositFilter struct {
	Owner    event.Owner
	Statuses []DepositStatus
	Networks []string
	Q        string // the beginning of the name, the address or the id, without case
	After    string
	Limit    int
}

// TransferKey identifies a payment on its network: the same transaction may pay somebody else, or in
// another asset, on another branch of the chain.
type TransferKey struct {
	TxHash  string
	Index   uint32
	To      chain.Address
	AssetID string
}

// Reader has the reads of this package.
type Reader interface {
	InvoiceReader
	PaymentReader
	AddressReader
	DustReader
}

// InvoiceReader reads invoices.
type InvoiceReader interface {
	// Invoice returns an invoice of an owner, or fault.NotFound when the owner has none of this id.
	Invoice(ctx context.Context, owner event.Owner, id string) (Invoice, error)
	// InvoiceByID is Invoice for callers without an owner: the checkout page and the workers.
	InvoiceByID(ctx context.Context, id string) (Invoice, error)
	// InvoicesByID returns the invoices that exist, each once, in any order.
	InvoicesByID(ctx context.Context, ids []string) ([]Invoice, error)
	// Invoices returns a page, newest first.
	Invoices(ctx context.Context, f Filter) ([]Invoice, error)
	// DueInvoices returns invoices with a DueAt that is not after now, oldest DueAt and then lowest id
	// first.
	DueInvoices(ctx context.Context, now time.Time, limit int) ([]Invoice, error)
	// InvoiceSettings returns the settings of an account, or fault.NotFound.
	InvoiceSettings(ctx context.Context, accountID string) (Settings, error)
}

// PaymentReader reads payments.
type PaymentReader interface {
	// Payment returns a payment of an owner, or fault.NotFound when the owner has none of this id.
	Payment(ctx context.Context, owner event.Owner, id string) (Payment, error)
	// PaymentByID is Payment for callers without an owner.
	PaymentByID(ctx context.Context, id string) (Payment, error)
	// Payments returns a page, newest first.
	Payments(ctx context.Context, f PaymentFilter) ([]Payment, error)
	// PaymentsOfInvoices returns all payments to these invoices; the payments of each are oldest first.
	PaymentsOfInvoices(ctx context.Context, invoiceIDs []string) ([]Payment, error)
	// PaymentsByHash returns the payments of a network whose transaction hash is among hashes, each once, in
	// any order.
	PaymentsByHash(ctx context.Context, network string, hashes []string) ([]Payment, error)
	// UnconfirmedPayments returns the payments of a network that are detected and in a block at or below the
	// height, lowest block and then lowest id first. They may now have enough confirmations.
	UnconfirmedPayments(ctx context.Context, network string, height uint64, limit int) ([]Payment, error)
	// UnminedPayments returns the payments of a network that are detected or orphaned and in no block,
	// in any order.
	UnminedPayments(ctx context.Context, network string) ([]Payment, error)
	// PaymentsAbove returns the detected and confirmed payments of a network in blocks above the height,
	// in any order.
	PaymentsAbove(ctx context.Context, network string, height uint64) ([]Payment, error)
	// BalancePayments returns the payments to these addresses of a network that are not dropped, in any asset
	// and in any order.
	BalancePayments(ctx context.Context, network string, addresses []chain.Address) ([]Payment, error)
	// DuePayments returns payments with a DueAt that is not after now, oldest DueAt and then lowest id
	// first.
	DuePayments(ctx context.Context, now time.Time, limit int) ([]Payment, error)
}

// AddressReader reads addresses of ours, including those of options and of wallets.
type AddressReader interface {
	// MatchAddresses returns those of the given addresses that are ours, each once, in any order: one indexed
	// query.
	MatchAddresses(ctx context.Context, space chain.Space, addresses []chain.Address) ([]Address, error)
	// AddressesSince returns the addresses of a kind that were made for a network at or after a
	// time, newest first; the zero time is for all of them.
	AddressesSince(ctx context.Context, network string, kind AddressKind, since time.Time) ([]Address, error)
	// AddressesAfter returns up to limit addresses of a space that follow after in the order of their text;
	// the empty address is before all of them.
	AddressesAfter(ctx context.Context, space chain.Space, after chain.Address, limit int) ([]Address, error)
	// DueAddresses returns up to limit addresses that were made for a network and have a NextCheck that is
	// not after now, oldest NextCheck first: only urgent ones, or only the others.
	DueAddresses(
		ctx context.Context,
		network string,
		urgent bool,
		now time.Time,
		limit int,
	) ([]Address, error)
	// DepositAddress returns a deposit address of an owner, or fault.NotFound when the owner has none of
	// this id.
	DepositAddress(ctx context.Context, owner event.Owner, id string) (DepositAddress, error)
	// DepositAddresses returns a page, newest first.
	DepositAddresses(ctx context.Context, f DepositFilter) ([]DepositAddress, error)
}

// DustReader reads transfers that are too small to be payments.
type DustReader interface {
	// DustOf returns the sums of all assets at these addresses of a network, in any order.
	DustOf(ctx context.Context, network string, addresses []chain.Address) ([]Dust, error)
	// DustTransfers returns up to limit transfers of an asset to an address, lowest block and then hash
	// first.
	DustTransfers(
		ctx context.Context,
		network string,
		address chain.Address,
		assetID string,
		limit int,
	) ([]DustTransfer, error)
	// DustByHash returns the transfers of a network whose transaction hash is among hashes, in any order.
	DustByHash(ctx context.Context, network string, hashes []string) ([]DustTransfer, error)
	// DustAbove returns the transfers of a network in blocks above a height, in any order.
	DustAbove(ctx context.Context, network string, height uint64) ([]DustTransfer, error)
}

// Tx has the reads and writes that one operation of this package may make.
type Tx interface {
	Reader
	Writer
	scan.Tx
	event.Appender
	// OwnTransactions is wallet.TransactionReader's: it returns which of the hashes are transactions of ours,
	// and their kinds. Their transfers are not payments, except those of payouts.
	OwnTransactions(
		ctx context.Context,
		network string,
		hashes []string,
	) (map[string]wallet.OwnTransaction, error)
	// OutgoingByHash is wallet.OutgoingReader's: it returns which of the hashes took something from an
	// address of ours.
	OutgoingByHash(ctx context.Context, network string, hashes []string) ([]wallet.Outgoing, error)
}

// Writer writes the records of this package.
type Writer interface {
	PutInvoice(ctx context.Context, inv *Invoice) error
	PutPayments(ctx context.Context, payments ...*Payment) error
	PutDepositAddress(ctx context.Context, d *DepositAddress) error
	// PutAddress stores an address of ours; fault.Duplicate when its space has it already.
	PutAddress(ctx context.Context, a Address) error
	// UpdateAddresses replaces addresses that PutAddress stored. They have no versions: the last write wins.
	UpdateAddresses(ctx context.Context, addresses ...Address) error
	PutDust(ctx context.Context, d *Dust) error
	// PutDustTransfer stores a transfer; fault.Duplicate when it is stored already.
	PutDustTransfer(ctx context.Context, d DustTransfer) error
	// DeleteDustTransfer deletes a transfer; an absent one is no error.
	DeleteDustTransfer(ctx context.Context, network string, key TransferKey) error
	// ReserveNumbers takes n consecutive numbers from a counter and returns the first; counters start at
	// first. A transaction that does not commit takes none. Callers give it a transaction of its own, so that
	// creations never queue on one row.
	ReserveNumbers(ctx context.Context, counter string, n int, first int64) (int64, error)
}

// database is this package's view of a store.
type database interface {
	Reader
	scan.CursorReader
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}
