// Command quickstart runs a whole payment service in one process. It has a SQLite file in a
// temporary directory, a simulated network (or a real EVM node), a merchant's webhook receiver, the
// API and the checkout page.
//
//	go run ./examples/quickstart              serves on 127.0.0.1 and stays
//	go run ./examples/quickstart -once        plays one payment from invoice to webhook and exits
//	go run ./examples/quickstart -once -evm-rpc http://127.0.0.1:8545
//
// With -evm-rpc the payer is the first well-known development account of anvil and hardhat, or the key in
// the environment variable QUICKSTART_PAYER_KEY (hex).
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

func main() {
	once := flag.Bool("once", false, "play one payment from invoice to webhook, then exit")
	rpc := flag.String(
		"evm-rpc", "",
		"JSON-RPC `URL` of a development EVM node; without it a network is simulated",
	)
	addr := flag.String(
		"addr", "127.0.0.1:8080", "`address` to serve on; a free port is taken when it is in use",
	)
	verbose := flag.Bool("v", false, "log what the service does")

	flag.Parse()

	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "quickstart takes flags alone, and was given %q; -h lists them\n", flag.Args())
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx, *once, *rpc, *addr, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run starts the service and either plays one payment or serves until ctx ends.
func run(ctx context.Context, once bool, rpc, addr string, verbose bool) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	log := newLogger(verbose)

	network, err := dial(ctx, rpc, log)
	if err != nil {
		return err
	}

	db, closeDB, err := openStore()
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, closeDB()) }()

	listener, err := listen(addr)
	if err != nil {
		return err
	}

	base := "http://" + listener.Addr().String()

	engine, err := newEngine(ctx, db, network, base, log)
	if err != nil {
		return err
	}

	key, err := createAccount(ctx, engine)
	if err != nil {
		return err
	}

	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	server := newServer(ctx, engine)
	failed := start(ctx, &wg, engine, server, listener)

	defer server.Close()

	wg.Go(func() { network.run(ctx) })

	shop := merchant{base: base, key: key, network: network}
	if once {
		return shop.payOnce(ctx)
	}

	return serve(ctx, shop, failed)
}

// newLogger returns a logger to standard error, or one that discards.
func newLogger(verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}

	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

// openStore opens one SQLite file in a temporary directory, which the returned function closes and removes. A
// service with many processes would use postgres.New(db).
func openStore() (store.Store, func() error, error) {
	dir, err := os.MkdirTemp("", "payments-quickstart-")
	if err != nil {
		return nil, nil, err
	}

	db, err := sqlite.Open(filepath.Join(dir, "payments.db"))
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}

	return db, func() error {
		defer os.RemoveAll(dir)

		return db.Close()
	}, nil
}

// newEngine returns a checked engine with fresh keys, which are only in memory. In production the
// mnemonic comes from a secret store, or the signer is a KMS.
func newEngine(
	ctx context.Context,
	db store.Store,
	network *network,
	base string,
	log *slog.Logger,
) (*payments.Engine, error) {
	mnemonic, err := hdkey.NewMnemonic(nil, 128)
	if err != nil {
		return nil, err
	}

	signer, err := hdkey.New(mnemonic, "")
	if err != nil {
		return nil, err
	}

	secret := make([]byte, 32)
	rand.Read(secret)

	prices, err := rate.NewFixed(
		map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300", "USDC/USD": "1", "USDC/EUR": "0.92"},
		time.Minute, nil,
	)
	if err != nil {
		return nil, err
	}

	engine, err := payments.New(payments.Config{
		Store:        db,
		Drivers:      []payments.ChainDriver{network.driver},
		Signer:       signer,
		Rates:        prices,
		BaseURL:      base,
		SecretKey:    secret,
		Log:          log,
		FeeAddresses: map[string]string{network.slug: network.feeAddress},
		// Webhooks never go to this machine otherwise; the example's receiver listens on it.
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		return nil, err
	}

	return engine, engine.Check(ctx)
}

// createAccount creates a merchant's account and returns its test key.
func createAccount(ctx context.Context, engine *payments.Engine) (string, error) {
	created, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		return "", err
	}

	_, key, err := engine.Accounts.CreateKey(
		ctx, account.KeyParams{AccountID: created.ID, Name: "quickstart"},
	)

	return key, err
}

// newServer mounts the two handlers under the application's own mux.
func newServer(ctx context.Context, engine *payments.Engine) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/v1/", httpapi.Handler(engine, nil))
	mux.Handle("/checkout/", checkout.Handler(engine, nil))

	return limits.Server(ctx, mux)
}

// start runs the engine and the server until ctx ends. The channel receives the error of one that fails.
func start(
	ctx context.Context,
	wg *sync.WaitGroup,
	engine *payments.Engine,
	server *http.Server,
	listener net.Listener,
) <-chan error {
	failed := make(chan error, 2)

	wg.Go(func() {
		if err := engine.Run(ctx); err != nil {
			failed <- err
		}
	})
	wg.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	})

	return failed
}

// serve prints how to use the service and waits until ctx ends or a part of it fails.
func serve(ctx context.Context, shop merchant, failed <-chan error) error {
	fmt.Printf("payments is ready: %s\n\nAPI key (test mode): %s\n\n", shop.base, shop.key)
	fmt.Printf(
		"create an invoice:\n  curl -s %s/v1/invoices -H 'Authorization: Bearer %s' -H 'Content-Type: "+
			"application/json' \\\n    -d "+
			"'{\"price\":{\"currency\":\"EUR\",\"amount\":\"49.90\"},\"order_id\":\"order-1\"}'\n\n",
		shop.base, shop.key,
	)

	url, err := shop.firstInvoice(ctx)
	if err != nil {
		return err
	}

	fmt.Printf("checkout page of a first invoice:\n  %s\n\nCtrl-C ends it; nothing is kept.\n", url)

	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// listen listens on the address, or on a free port of the same host when it is in use.
func listen(addr string) (net.Listener, error) {
	listener, err := net.Listen("tcp", addr)
	if err == nil {
		return listener, nil
	}

	if !errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("-addr: %w: give an address of this machine, such as 127.0.0.1:8080", err)
	}

	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}

	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}
