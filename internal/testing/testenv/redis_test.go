//go:build unix

package testenv

import (
	"net"
	"strings"
	"testing"
)

func TestRedisAnswers(t *testing.T) {
	n := RedisServer(t)
	if got, err := n.command("PING"); err != nil || got != "PONG" {
		t.Errorf("PING: %q (%v), want PONG", got, err)
	}

	if !strings.HasPrefix(n.Addr, "127.0.0.1:") {
		t.Errorf("address %s is not on 127.0.0.1", n.Addr)
	}

	if got, err := n.command("SET key value"); err != nil || got != "OK" {
		t.Errorf("SET: %q (%v), want OK", got, err)
	}

	other := RedisNode{Addr: Redis(t)}
	if got, err := other.command("INFO keyspace"); err != nil || strings.Contains(got, "keys=") {
		t.Errorf("a new server holds %q (%v)", got, err)
	}
}

func TestRedisKilled(t *testing.T) {
	n := RedisServer(t)
	n.Kill()

	if conn, err := net.Dial("tcp", n.Addr); err == nil {
		conn.Close()
		t.Error("something listens after Kill")
	}
}

func TestRedisDoesNotTrustAnotherServerOnItsPort(t *testing.T) {
	theirs, ours := RedisServer(t), RedisServer(t)

	mistaken := RedisNode{Addr: theirs.Addr, process: ours.process}
	if err := mistaken.ready(); err == nil {
		t.Error("ready although another process answers")
	}
}
