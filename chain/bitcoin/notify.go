package bitcoin

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"net/url"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// blockTopic is the topic of a node's -zmqpubhashblock (Bitcoin Core, doc/zmq.md).
const blockTopic = "hashblock"

// notified is a driver with a node that announces new blocks.
type notified struct {
	*driver
	network, address string // of the node's publisher, as net.Dial takes them
}

var _ chain.HeadNotifier = (*notified)(nil)

// newNotified returns the driver with the publisher of Config.ZMQ. It does not connect.
func newNotified(d *driver, endpoint string) (*notified, error) {
	parsed, err := url.Parse(endpoint)

	switch {
	case err == nil && parsed.Scheme == "tcp" && parsed.Port() != "":
		return &notified{d, "tcp", parsed.Host}, nil
	case err == nil && parsed.Scheme == "ipc" && parsed.Path != "":
		return &notified{d, "unix", parsed.Path}, nil
	}

	return nil, invalidConfig("ZMQ %q is not of the form tcp://host:port or ipc:///path", endpoint)
}

// NotifyHeads subscribes to the hashes of blocks. If the node disappears silently, the connection's
// keep-alive ends the subscription. Errors:
//
//   - fault.Unavailable: the node cannot be reached, or the subscription ended
func (d *notified) NotifyHeads(ctx context.Context, notify func()) error {
	limited, cancel := context.WithTimeout(ctx, d.config.Timeout)
	defer cancel()

	conn, err := (&net.Dialer{}).DialContext(limited, d.network, d.address)
	if err != nil {
		return cmp.Or(ctx.Err(), d.notifyError(err))
	}
	defer conn.Close()

	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()

	from := bufio.NewReader(conn)

	if err := conn.SetDeadline(time.Now().Add(d.config.Timeout)); err != nil {
		return cmp.Or(ctx.Err(), d.notifyError(err))
	}

	if err := subscribeZMTP(conn, from, blockTopic); err != nil {
		return cmp.Or(ctx.Err(), d.notifyError(err))
	}

	if err := conn.SetDeadline(time.Time{}); err != nil {
		return cmp.Or(ctx.Err(), d.notifyError(err))
	}

	for {
		topic, err := readNotification(from)
		if err != nil {
			return cmp.Or(ctx.Err(), d.notifyError(err))
		}

		if topic == blockTopic {
			notify()
		}
	}
}

// notifyError returns why the subscription failed or ended.
func (d *notified) notifyError(err error) error {
	return fault.Wrap(
		err, fault.Unavailable, "node_unavailable",
		"the publisher %s of network %s does not announce blocks: %v",
		d.address, d.driver.network.Slug, err,
	)
}
