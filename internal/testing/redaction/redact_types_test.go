package redaction_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/pricecache"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/paymentstest"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/lease"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/store/mysql"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/store/redis"
	"github.com/seed-8ee7f392/payments/store/sqlite"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
	"github.com/seed-8ee7f392/payments/webhook"
)

// exportedTypes are the exported structs of every public package; TestNoPrintedValueShowsASecret compares them
// with docs/api.txt.
var exportedTypes = []reflect.Type{
	reflect.TypeFor[account.Account](),
	reflect.TypeFor[account.Config](),
	reflect.TypeFor[account.Key](),
	reflect.TypeFor[account.KeyParams](),
	reflect.TypeFor[account.Service](),
	reflect.TypeFor[account.Settings](),
	reflect.TypeFor[requestkey.Config[payments.Tx]](),
	reflect.TypeFor[requestkey.Answer](),
	reflect.TypeFor[idempotency.Key](),
	reflect.TypeFor[idempotency.Record](),
	reflect.TypeFor[requestkey.Request](),
	reflect.TypeFor[requestkey.Running](),
	reflect.TypeFor[audit.Difference](),
	reflect.TypeFor[audit.Network](),
	reflect.TypeFor[audit.Blocks](),
	reflect.TypeFor[audit.Record](),
	reflect.TypeFor[audit.Recovery](),
	reflect.TypeFor[audit.Report](),
	reflect.TypeFor[audit.Stray](),
	reflect.TypeFor[audit.Wallet](),
	reflect.TypeFor[chain.Amount](),
	reflect.TypeFor[chain.Asset](),
	reflect.TypeFor[chain.Block](),
	reflect.TypeFor[chain.Coin](),
	reflect.TypeFor[chain.Decoded](),
	reflect.TypeFor[chain.DurableNonce](),
	reflect.TypeFor[chain.NonceAccount](),
	reflect.TypeFor[chain.Destination](),
	reflect.TypeFor[chain.FoundTx](),
	reflect.TypeFor[chain.Head](),
	reflect.TypeFor[chain.Holding](),
	reflect.TypeFor[chain.Intent](),
	reflect.TypeFor[chain.KeyRef](),
	reflect.TypeFor[chain.Network](),
	reflect.TypeFor[chain.Order](),
	reflect.TypeFor[chain.Outpoint](),
	reflect.TypeFor[chain.Output](),
	reflect.TypeFor[chain.Party](),
	reflect.TypeFor[chain.Payload](),
	reflect.TypeFor[chain.PaymentRequest](),
	reflect.TypeFor[chain.PoolTx](),
	reflect.TypeFor[chain.PublicKey](),
	reflect.TypeFor[chain.Ref](),
	reflect.TypeFor[chain.Refusal](),
	reflect.TypeFor[chain.Registry](),
	reflect.TypeFor[chain.SignRequest](),
	reflect.TypeFor[chain.Signed](),
	reflect.TypeFor[chain.Space](),
	reflect.TypeFor[chain.Spend](),
	reflect.TypeFor[chain.SweepRequest](),
	reflect.TypeFor[chain.SweepStep](),
	reflect.TypeFor[chain.Tier](),
	reflect.TypeFor[chain.Transfer](),
	reflect.TypeFor[chain.TxStatus](),
	reflect.TypeFor[chain.Unsigned](),
	reflect.TypeFor[bitcoin.Config](),
	reflect.TypeFor[evm.Config](),
	reflect.TypeFor[hdkey.Descriptor](),
	reflect.TypeFor[hdkey.Signer](),
	reflect.TypeFor[scan.Cursor](),
	reflect.TypeFor[scan.Position](),
	reflect.TypeFor[scan.Range](),
	reflect.TypeFor[scan.Retry](),
	reflect.TypeFor[sim.Chain](),
	reflect.TypeFor[sim.Config](),
	reflect.TypeFor[solana.Config](),
	reflect.TypeFor[tron.Config](),
	reflect.TypeFor[tron.Node](),
	reflect.TypeFor[wallet.Attempt](),
	reflect.TypeFor[wallet.Balance](),
	reflect.TypeFor[wallet.Coin](),
	reflect.TypeFor[wallet.Conflict](),
	reflect.TypeFor[wallet.Outgoing](),
	reflect.TypeFor[wallet.OwnTransaction](),
	reflect.TypeFor[wallet.Reservation](),
	reflect.TypeFor[wallet.Transaction](),
	reflect.TypeFor[wallet.Wallet](),
	reflect.TypeFor[conformance.DriverHarness](),
	reflect.TypeFor[conformance.LimiterHarness](),
	reflect.TypeFor[conformance.SignerHarness](),
	reflect.TypeFor[conformance.WakerHarness](),
	reflect.TypeFor[event.Event](),
	reflect.TypeFor[event.Filter](),
	reflect.TypeFor[event.Owner](),
	reflect.TypeFor[event.Request](),
	reflect.TypeFor[fault.Error](),
	reflect.TypeFor[health.Attention](),
	reflect.TypeFor[health.Follower](),
	reflect.TypeFor[health.Network](),
	reflect.TypeFor[health.Node](),
	reflect.TypeFor[health.Report](),
	reflect.TypeFor[health.Unread](),
	reflect.TypeFor[health.Backlog](),
	reflect.TypeFor[health.Check](),
	reflect.TypeFor[health.Process](),
	reflect.TypeFor[health.Wallet](),
	reflect.TypeFor[httpapi.Options](),
	reflect.TypeFor[checkout.Options](),
	reflect.TypeFor[invoice.Address](),
	reflect.TypeFor[invoice.Config](),
	reflect.TypeFor[invoice.CreateParams](),
	reflect.TypeFor[invoice.DepositAddress](),
	reflect.TypeFor[invoice.DepositFilter](),
	reflect.TypeFor[invoice.DepositParams](),
	reflect.TypeFor[invoice.DepositResource](),
	reflect.TypeFor[invoice.DepositUpdate](),
	reflect.TypeFor[invoice.Dust](),
	reflect.TypeFor[invoice.DustTransfer](),
	reflect.TypeFor[invoice.Filter](),
	reflect.TypeFor[invoice.ImportParams](),
	reflect.TypeFor[invoice.Invoice](),
	reflect.TypeFor[invoice.Option](),
	reflect.TypeFor[invoice.OptionParams](),
	reflect.TypeFor[invoice.OptionResource](),
	reflect.TypeFor[invoice.Payment](),
	reflect.TypeFor[invoice.PaymentFilter](),
	reflect.TypeFor[invoice.PaymentResource](),
	reflect.TypeFor[invoice.Price](),
	reflect.TypeFor[invoicestate.RefundChange](),
	reflect.TypeFor[invoice.Refunds](),
	reflect.TypeFor[invoice.Resource](),
	reflect.TypeFor[invoice.Service](),
	reflect.TypeFor[invoice.Settings](),
	reflect.TypeFor[invoice.SimulateParams](),
	reflect.TypeFor[invoice.Simulated](),
	reflect.TypeFor[invoice.TokenAccount](),
	reflect.TypeFor[invoice.VerifiedAddress](),
	reflect.TypeFor[invoice.TransferKey](),
	reflect.TypeFor[pricecache.Cache](),
	reflect.TypeFor[rate.Feed](),
	reflect.TypeFor[rate.Fixed](),
	reflect.TypeFor[rate.MedianConfig](),
	reflect.TypeFor[rate.Quote](),
	reflect.TypeFor[limits.Table](),
	reflect.TypeFor[payments.Config](),
	reflect.TypeFor[payments.Engine](),
	reflect.TypeFor[payout.Transition[payout.Status]](),
	reflect.TypeFor[payout.Approval](),
	reflect.TypeFor[payout.ApprovalResource](),
	reflect.TypeFor[payout.Approver](),
	reflect.TypeFor[payout.Config](),
	reflect.TypeFor[payout.Conflict](),
	reflect.TypeFor[payout.Filter](),
	reflect.TypeFor[payout.Params](),
	reflect.TypeFor[payout.Payout](),
	reflect.TypeFor[payout.Signing](),
	reflect.TypeFor[payout.Prepared](),
	reflect.TypeFor[payout.Received](),
	reflect.TypeFor[payout.Refund](),
	reflect.TypeFor[payout.RefundFilter](),
	reflect.TypeFor[payout.RefundParams](),
	reflect.TypeFor[payout.RefundResource](),
	reflect.TypeFor[payout.Requester](),
	reflect.TypeFor[payout.Resource](),
	reflect.TypeFor[payout.Service](),
	reflect.TypeFor[payout.Settings](),
	reflect.TypeFor[settlement.CarriedFee](),
	reflect.TypeFor[settlement.Config](),
	reflect.TypeFor[settlement.Cost](),
	reflect.TypeFor[settlement.Filter](),
	reflect.TypeFor[settlement.Part](),
	reflect.TypeFor[settlement.Residue](),
	reflect.TypeFor[settlement.Resource](),
	reflect.TypeFor[settlement.Service](),
	reflect.TypeFor[settlement.Settings](),
	reflect.TypeFor[settlement.Settlement](),
	reflect.TypeFor[settlement.Step](),
	reflect.TypeFor[settlement.Sweep](),
	reflect.TypeFor[settlement.TokenResidue](),
	reflect.TypeFor[settlement.Brought](),
	reflect.TypeFor[lease.Lease](),
	reflect.TypeFor[event.Object](),
	reflect.TypeFor[conformance.Backends](),
	reflect.TypeFor[chain.UnreadableHolding](),
	reflect.TypeFor[chain.NodeState](),
	reflect.TypeFor[chain.UnreadableError](),
	reflect.TypeFor[chain.Unread](),
	reflect.TypeFor[chain.AddressCursor](),
	reflect.TypeFor[chain.AddressReading](),
	reflect.TypeFor[chain.Stray](),
	reflect.TypeFor[chain.RecoveryRequest](),
	reflect.TypeFor[postgres.Options](),
	reflect.TypeFor[postgres.Store](),
	reflect.TypeFor[redis.Options](),
	reflect.TypeFor[redis.Shared](),
	reflect.TypeFor[mysql.Store](),
	reflect.TypeFor[sqlite.Store](),
	reflect.TypeFor[sqlstore.Batch](),
	reflect.TypeFor[sqlstore.Dialect](),
	reflect.TypeFor[sqlstore.Explanation](),
	reflect.TypeFor[sqlstore.Options](),
	reflect.TypeFor[sqlstore.Types](),
	reflect.TypeFor[webhook.Attempt](),
	reflect.TypeFor[webhook.AttemptRequest](),
	reflect.TypeFor[webhook.AttemptResource](),
	reflect.TypeFor[webhook.AttemptResponse](),
	reflect.TypeFor[webhook.Backlog](),
	reflect.TypeFor[webhook.Claim](),
	reflect.TypeFor[webhook.BacklogReader](),
	reflect.TypeFor[webhook.Config](),
	reflect.TypeFor[webhook.Delivery](),
	reflect.TypeFor[webhook.DeliveryFilter](),
	reflect.TypeFor[webhook.DeliveryResource](),
	reflect.TypeFor[webhook.Endpoint](),
	reflect.TypeFor[webhook.EndpointFilter](),
	reflect.TypeFor[webhook.EndpointParams](),
	reflect.TypeFor[webhook.EndpointResource](),
	reflect.TypeFor[webhook.EndpointUpdate](),
	reflect.TypeFor[webhook.Notification](),
	reflect.TypeFor[webhook.NotificationData](),
	reflect.TypeFor[paymentstest.Service](),
	reflect.TypeFor[webhook.Policy](),
	reflect.TypeFor[webhook.ReceiverConfig](),
	reflect.TypeFor[webhook.Service](),
}

// hiddenTypes returns the structs behind the interfaces that constructors return.
func hiddenTypes(t *testing.T) []reflect.Type {
	t.Helper()

	const url = "http://127.0.0.1:1"

	type driver func() (chain.Driver, error)

	receiver, err := webhook.NewReceiver(webhook.ReceiverConfig{
		Secrets: []string{"whsec_1"},
		Handle:  func(context.Context, webhook.Notification) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}

	all := []any{sim.NewSigner(1, nil), memory.New(), receiver}

	for _, open := range []driver{
		func() (chain.Driver, error) { return evm.New(evm.Config{Network: evm.Local(1), RPC: url}) },
		func() (chain.Driver, error) {
			return bitcoin.New(bitcoin.Config{Network: bitcoin.Regtest, RPC: url})
		},
		func() (chain.Driver, error) {
			return solana.New(solana.Config{Network: solana.Devnet, RPC: url})
		},
		func() (chain.Driver, error) {
			return solana.New(solana.Config{Network: solana.Devnet, RPC: url, WholeBlocks: true})
		},
		func() (chain.Driver, error) {
			return tron.New(tron.Config{Network: tron.Nile, Nodes: []tron.Node{{URL: url}}})
		},
	} {
		d, err := open()
		if err != nil {
			t.Fatal(err)
		}

		all = append(all, d)
	}

	types := make([]reflect.Type, len(all))
	for i, v := range all {
		types[i] = reflect.TypeOf(v).Elem()
	}

	return types
}
