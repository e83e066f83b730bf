package evm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// maxNotification bounds one message of a node, in bytes. A header has less than 2 KiB.
const maxNotification = 1 << 20

// notified is a driver with a node that announces new blocks.
type notified struct {
	*driver
	url     string
	host    string
	secrets failover.Secrets
	timeout time.Duration // of making a subscription
}

var _ chain.HeadNotifier = (*notified)(nil)

// newNotified returns the driver with the node of a WebSocket URL. It does not connect.
func newNotified(d *driver, config Config) (*notified, error) {
	parsed, err := url.Parse(config.WebSocket)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "ws" && parsed.Scheme != "wss") {
		return nil, invalidConfig("WebSocket is not of the form ws(s)://host/path")
	}

	return &notified{
		driver:  d,
		url:     config.WebSocket,
		host:    parsed.Host,
		secrets: failover.SecretsOf(parsed),
		timeout: config.withDefaults().Timeout,
	}, nil
}

// NotifyHeads subscribes to newHeads (https://geth.ethereum.org/docs/interacting-with-geth/rpc/pubsub). The
// client pings the node, so that a lost connection ends the subscription. Errors:
//
//   - fault.Unavailable: the node cannot be reached, or the subscription ended
//   - fault.Unsupported: the node has no such subscription
func (d *notified) NotifyHeads(ctx context.Context, notify func()) error {
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()

	client, err := rpc.DialOptions(limited, d.url, rpc.WithWebsocketMessageSizeLimit(maxNotification))
	if err != nil {
		return cmp.Or(ctx.Err(), d.notifyError(err))
	}
	defer client.Close()

	heads := make(chan json.RawMessage, 16)

	subscription, err := client.EthSubscribe(limited, heads, "newHeads")
	if err != nil {
		return cmp.Or(ctx.Err(), d.notifyError(err))
	}
	defer subscription.Unsubscribe()

	for {
		select {
		case <-heads:
			notify()
		case err := <-subscription.Err():
			return d.notifyError(err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// methodNotFound is JSON-RPC's code for a method that a node does not have (JSON-RPC 2.0, section 5.1).
const methodNotFound = -32601

// notifyError returns why the subscription failed or ended, without the secrets of the URL.
func (d *notified) notifyError(err error) error {
	refusal, refused := errors.AsType[rpc.Error](err)
	if errors.Is(err, rpc.ErrNotificationsUnsupported) || refused && refusal.ErrorCode() == methodNotFound {
		return fault.New(
			fault.Unsupported, "notify_unsupported",
			"node %s of network %s announces no blocks: leave WebSocket empty, or name another node",
			d.host, d.network.Slug,
		)
	}

	what := "it ended the subscription"
	if err != nil {
		what = d.secrets.Clean(err.Error())
	}

	return fault.New(
		fault.Unavailable, "node_unavailable",
		"node %s of network %s does not announce blocks: %s", d.host, d.network.Slug, what,
	)
}
