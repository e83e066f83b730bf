//go:build unix

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/regtest"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// timedDriver is a driver that measures how long reading blocks took: the node's work, its answer on
// the wire, and its parsing.
type timedDriver struct {
	bitcoinDriver
	reading atomic.Int64 // nanoseconds
}

// bitcoinDriver is what the driver can do.
type bitcoinDriver interface {
	chain.Driver
	chain.BlockScanner
	chain.Agreed
	chain.Mempool
	chain.Finder
	chain.CoinReader
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.FeeChecker
	chain.InputPricer
	chain.Sender
	chain.Batcher
	chain.Sweeper
	chain.Bumper
	chain.Checker
}

func (d *timedDriver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	start := time.Now()
	defer func() { d.reading.Add(int64(time.Since(start))) }()

	return d.bitcoinDriver.Blocks(ctx, from, to)
}

// follower is a service that follows a network with many watched addresses.
type follower struct {
	engine *payments.Engine
	store  *sqlite.Store
	driver *timedDriver
}

func newFollower(b *testing.B, url string, watched []chain.Address) *follower {
	b.Helper()

	network := bitcoin.Regtest
	network.BlockTime = 400 * time.Millisecond // looks for blocks every tenth of a second

	driver, err := bitcoin.New(bitcoin.Config{Network: network, RPC: url})
	if err != nil {
		b.Fatal(err)
	}

	f := &follower{driver: &timedDriver{bitcoinDriver: driver.(bitcoinDriver)}}
	if f.store, err = sqlite.Open(filepath.Join(b.TempDir(), "payments.db")); err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _ = f.store.Close() })

	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		b.Fatal(err)
	}

	prices, err := rate.NewFixed(map[string]string{"BTC/USD": "60000"}, time.Minute, nil)
	if err != nil {
		b.Fatal(err)
	}

	f.engine, err = payments.New(payments.Config{
		Store:     f.store,
		Drivers:   []payments.ChainDriver{f.driver},
		Signer:    keys,
		Rates:     prices,
		BaseURL:   "http://127.0.0.1",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}

	if _, err := f.engine.Accounts.CreateAccount(
		b.Context(), account.Settings{Name: "Corner Shop"},
	); err != nil {
		b.Fatal(err)
	}

	for start := 0; start < len(watched); start += 10_000 {
		part := watched[start:min(start+10_000, len(watched))]

		if err := f.store.Update(b.Context(), func(ctx context.Context, tx store.Tx) error {
			for i, a := range part {
				// A wallet's: what arrives there is a coin and no payment, so that all that is
				// measured is finding it.
				if err := tx.PutAddress(ctx, invoice.Address{
					Space:     network.Space(),
					Address:   a,
					Kind:      invoice.ForWallet,
					Network:   network.Slug,
					CreatedAt: time.Now(),
					Key: chain.KeyRef{
						Family: chain.Bitcoin,
						Role:   chain.RoleDeposit,
						Index:  uint32(start + i),
					},
				}); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}

	return f
}

// until runs the service until it has read the chain up to a height, and returns how long that took.
func (f *follower) until(b *testing.B, height uint64) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	start := time.Now()

	go func() { done <- f.engine.Run(ctx) }()

	for {
		c, _, err := f.store.Cursor(ctx, bitcoin.Regtest.Slug)
		if err != nil {
			b.Fatal(err)
		}

		if c.At.Height >= height {
			break
		}

		if time.Since(start) > 5*time.Minute {
			b.Fatalf("block %d was not reached: the cursor is at %d", height, c.At.Height)
		}

		time.Sleep(time.Millisecond)
	}

	took := time.Since(start)

	cancel()

	if err := <-done; err != nil {
		b.Fatal(err)
	}

	return took
}

// BenchmarkBitcoinBlocks reads blocks of 4,000 transactions from a node, with a thousand and with a
// million watched addresses on SQLite. Of each block ten outputs are ours. The ratio is that of our
// own time: all but what reading takes.
func BenchmarkBitcoinBlocks(b *testing.B) {
	const transactions, ours = 4_000, 10

	n := testenv.Btcd(b)

	payer, err := regtest.New(b.Context(), &n.BitcoinRPC, 4)
	if err != nil {
		b.Fatal(err)
	}

	addresses := make([]chain.Address, 1_000_000)
	for i := range addresses {
		// no payer of this benchmark can pay these
		addresses[i] = chain.Address(fmt.Sprintf("bcrt1q%038d", i))
	}

	for i := range ours {
		if addresses[i], err = payer.NewAddress(b.Context()); err != nil {
			b.Fatal(err)
		}
	}

	few, many := newFollower(b, n.URL, addresses[:1_000]), newFollower(b, n.URL, addresses)

	const blocks = 8

	for b.Loop() {
		var tookFew, tookMany time.Duration

		few.driver.reading.Store(0)
		many.driver.reading.Store(0)
		// Each goes first once: the second one finds the node's caches warm.
		for _, order := range [][]*follower{{few, many}, {many, few}} {
			reading := []int64{few.driver.reading.Load(), many.driver.reading.Load()}

			splits, err := payer.Split(b.Context(), blocks/2, transactions)
			if err != nil {
				b.Fatal(err)
			}

			many.until(b, payer.Tip())
			few.until(b, payer.Tip())

			if err := payer.MineFull(b.Context(), splits, addresses[:ours]); err != nil {
				b.Fatal(err)
			}

			few.driver.reading.Store(reading[0])
			many.driver.reading.Store(reading[1])

			for _, f := range order {
				took := f.until(b, payer.Tip())
				if f == few {
					tookFew += took
				} else {
					tookMany += took
				}
			}
		}

		ownFew, ownMany := tookFew-time.Duration(
			few.driver.reading.Load(),
		), tookMany-time.Duration(
			many.driver.reading.Load(),
		)
		b.ReportMetric(float64(blocks)/tookFew.Seconds(), "blocks/s@1e3")
		b.ReportMetric(float64(blocks)/tookMany.Seconds(), "blocks/s@1e6")
		b.ReportMetric(float64(tookMany)/float64(tookFew), "time-1e6/1e3")
		b.ReportMetric(float64(ownMany)/float64(ownFew), "own-1e6/1e3")
		b.ReportMetric(float64(ownMany)/float64(tookMany), "own-share@1e6")
	}
}
