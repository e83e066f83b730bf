package main

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// drain is how long requests may take to end once the process has to stop.
const drain = 20 * time.Second

// newEngine returns the engine that every command but migrate and signer uses.
func newEngine(log *slog.Logger, s settings, db *sql.DB) (*payments.Engine, error) {
	records, err := postgres.New(db, postgres.Options{
		ListenConn: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, s.databaseURL) },
	})
	if err != nil {
		return nil, err
	}

	if s.baseURL == "" {
		return nil, errors.New(
			"BASE_URL is empty: set it to where payers reach the service, https://pay.example.com",
		)
	}

	drivers, err := s.drivers(log)
	if err != nil {
		return nil, err
	}

	prices, err := s.rates()
	if err != nil {
		return nil, err
	}

	secret, err := s.secretKey()
	if err != nil {
		return nil, err
	}

	return payments.New(payments.Config{
		Store:        records,
		Drivers:      drivers,
		Signer:       newRemoteSigner(s.signerSocket),
		Rates:        prices,
		BaseURL:      s.baseURL,
		SecretKey:    secret,
		Epoch:        s.epoch,
		FeeAddresses: s.feeAddresses,
		WebhookAllow: s.webhookAllow,
		Log:          log,
	})
}

// with opens the database, whose tables have to be there, and the engine for one command.
func with(ctx context.Context, log *slog.Logger, s settings, use func(*payments.Engine) error) (err error) {
	db, err := openDatabase(ctx, s)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	engine, err := newEngine(log, s, db)
	if err != nil {
		return err
	}

	// The first reading compares the version of the schema, too.
	if _, _, err := engine.Accounts.List(ctx, "", 1); err != nil {
		return fmt.Errorf(
			"read %s: %w; the command migrate makes and upgrades the tables",
			databaseName(s),
			err,
		)
	}

	return use(engine)
}

// createMerchant prints the key once: only its hash is kept.
func createMerchant(ctx context.Context, log *slog.Logger, s settings, name string, live bool) error {
	if name == "" {
		return errors.New("the merchant has no name: server merchant 'Corner Shop'")
	}

	return with(ctx, log, s, func(engine *payments.Engine) error {
		created, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: name})
		if err != nil {
			return err
		}

		_, key, err := engine.Accounts.CreateKey(
			ctx, account.KeyParams{AccountID: created.ID, Livemode: live, Name: "first"},
		)
		if err != nil {
			return err
		}

		fmt.Printf("account %s\nkey %s\n", created.ID, key)

		return nil
	})
}

// runAudit is for a nightly job, which notifies a person when it fails.
func runAudit(ctx context.Context, log *slog.Logger, s settings) error {
	return with(ctx, log, s, func(engine *payments.Engine) error {
		report, err := engine.Audit(ctx)
		if err != nil {
			return err
		}

		for _, d := range report.Differences() {
			fmt.Printf("%s %s %s: %s\n", d.Network, d.Kind, d.Address, d.Message)
		}

		if !report.Clean() {
			return errors.New("the records differ from the networks")
		}

		fmt.Println("the records agree with every network")

		return nil
	})
}

// operate runs a command for one network, which a person gives after looking into what /readyz or the log names.
func operate(ctx context.Context, log *slog.Logger, s settings, name string, networks []string) error {
	if len(networks) != 1 {
		return fmt.Errorf("%s takes one network, and was given %q: server %s sepolia", name, networks, name)
	}

	return with(ctx, log, s, func(engine *payments.Engine) error {
		if name == "resume" {
			return engine.Resume(ctx, networks[0])
		}

		return engine.Unfreeze(ctx, networks[0], "")
	})
}

// serve works and serves until ctx ends. Then no new connection is taken, requests have a while to end, and the
// engine stops last: it gives its leases to the other processes.
func serve(ctx context.Context, log *slog.Logger, s settings) error {
	return with(ctx, log, s, func(engine *payments.Engine) error {
		// A node of the wrong network is a mistake of the configuration; one that is down is not.
		if err := engine.Check(ctx); err != nil {
			log.Warn("a network did not pass its check", "error", err)
		}

		working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
		defer stopWork()

		public, err := listen(working, "LISTEN", s.listen, publicHandler(engine, s.trustedProxies))
		if err != nil {
			return err
		}

		if err := public.useTLS(s.cert, s.key); err != nil {
			return errors.Join(err, public.listener.Close())
		}

		admin, err := listen(working, "ADMIN_LISTEN", s.adminListen, adminHandler(engine))
		if err != nil {
			return errors.Join(err, public.listener.Close())
		}

		failed := make(chan error, 3)
		ended := make(chan struct{})

		go func() {
			defer close(ended)

			if err := engine.Run(working); err != nil {
				failed <- err
			}
		}()

		go func() { failed <- public.serve() }()
		go func() { failed <- admin.serve() }()

		log.Info(
			"the server is ready",
			"listen", public.listener.Addr().String(),
			"admin", admin.listener.Addr().String(),
			"networks", s.networks,
		)

		select {
		case <-ctx.Done():
			log.Info("the server stops")
		case err = <-failed:
		}

		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()

		err = errors.Join(err, public.server.Shutdown(draining))

		stopWork()
		<-ended

		return errors.Join(err, admin.server.Close())
	})
}

// site is one address that is served.
type site struct {
	server   *http.Server
	listener net.Listener
}

// listen takes the address of a variable.
func listen(ctx context.Context, variable, address string, handler http.Handler) (site, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return site{}, fmt.Errorf("%s: %w: set it to a free address, such as 127.0.0.1:8080", variable, err)
	}

	return site{limits.Server(ctx, handler), listener}, nil
}

// useTLS has the site served with a certificate and its key, two files. Without any, a proxy ends TLS.
func (s site) useTLS(cert, key string) error {
	if cert == "" && key == "" {
		return nil
	}

	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("TLS_CERT and TLS_KEY: %w: set both to files in PEM, or none behind a proxy", err)
	}

	s.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}

	return nil
}

// serve serves until Shutdown or Close, which is no error.
func (s site) serve() error {
	var err error

	if s.server.TLSConfig == nil {
		err = s.server.Serve(s.listener)
	} else {
		err = s.server.ServeTLS(s.listener, "", "")
	}

	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}

	return err
}

// publicHandler is for payers and merchants. What trusted proxies say of a client's address counts for allowlists and
// limits.
func publicHandler(engine *payments.Engine, trustedProxies []netip.Prefix) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", httpapi.Handler(engine, &httpapi.Options{TrustedProxies: trustedProxies}))
	mux.Handle("/checkout/", checkout.Handler(engine, &checkout.Options{TrustedProxies: trustedProxies}))

	return mux
}

// adminHandler is for probes and metrics, on an address that payers and merchants do not reach.
func adminHandler(engine *payments.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", httpapi.HealthHandler(engine))
	mux.Handle("/metrics", httpapi.MetricsHandler(engine))

	return mux
}
