package deliver

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	guardian "code.dny.dev/ssrf"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/ssrf"
	"github.com/seed-8ee7f392/payments/webhook"
)

// resolver answers every question for IPv4 or IPv6 addresses with those given, and with "no such
// name" when there are none. It is a DNS server at the other end of a pipe.
func resolver(addrs ...netip.Addr) *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()

				for { // over a stream, messages have a length before them (RFC 1035, section 4.2.2)
					var size [2]byte
					if _, err := theirs.Read(size[:]); err != nil {
						return
					}

					question := make([]byte, binary.BigEndian.Uint16(size[:]))
					if _, err := theirs.Read(question); err != nil {
						return
					}

					reply := answerDNS(question, addrs)
					if _, err := theirs.Write(
						append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...),
					); err != nil {
						return
					}
				}
			}()

			return ours, nil
		},
	}
}

func answerDNS(question []byte, addrs []netip.Addr) []byte {
	name := question[12:]

	end := 0
	for name[end] != 0 {
		end += int(name[end]) + 1
	}

	section := name[:end+5] // the name, its closing zero, type and class
	kind := binary.BigEndian.Uint16(section[end+1:])

	var records []byte

	count := 0

	for _, a := range addrs {
		if a.Is4() == (kind == 1) && (kind == 1 || kind == 28) {
			raw := a.AsSlice()
			records = append(records, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 60, 0, byte(len(raw)))
			records = append(records, raw...)
			count++
		}
	}

	reply := []byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, byte(count), 0, 0, 0, 0}
	if len(addrs) == 0 {
		reply[3] = 0x83 // no such name
	}

	return append(append(reply, section...), records...)
}

// pitfall 26: webhooks aimed at the inside of the network.
func TestInternalAddressesAreNotConnectedTo(t *testing.T) {
	reached := make(chan string, 1)
	server := serve(t, func(_ http.ResponseWriter, q *http.Request) { reached <- q.Host })
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]

	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "[::1]", "0.0.0.0", "[::]", // this machine
		// private
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "[fc00::1]", "[fd12:3456::1]", "100.64.0.1",
		"169.254.1.1", "[fe80::1]", // link-local
		"224.0.0.1", "239.255.255.250", "[ff02::1]", "255.255.255.255", // multicast and broadcast
		// metadata services
		"169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "192.0.0.192", "[fd20:ce::254]",
		// IPv4 written as IPv6
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:169.254.169.254]", "[::ffff:168.63.129.16]", "[::127.0.0.1]",
		// IPv4 inside IPv6: NAT64, 6to4, Teredo
		"[64:ff9b::7f00:1]", "[64:ff9b:1::a00:1]", "[2002:7f00:1::1]", "[2001::1]",
		// never on the internet
		"[fec0::1]", "[100::1]", "[2001:db8::1]", "192.0.2.1", "198.18.0.1", "240.0.0.1",
		"localhost", "inside.test", // names that lead here
		// odd notations, for a resolver to understand
		"0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.1.",
		"①②⑦.⓪.⓪.①", // digits that are normalised
	} {
		t.Run(host, func(t *testing.T) {
			h := newHarness(
				t,
				func(c *Config) { c.HTTP = HTTP{Resolver: resolver(netip.MustParseAddr("127.0.0.1"))} },
			)
			e := h.at("http://" + host + ":" + port + "/")
			h.postOnce()
			d := h.deliveries(e.ID)[0]
			// Go's own resolver does not look up names of digits alone; the system's may read them
			// as addresses.
			digits := looksNumeric(host) && !strings.HasPrefix(host, "0x") && d.Log[0].Error == "dns_error"
			if d.Attempts != 1 || d.Log[0].Error != "address_not_allowed" && !digits ||
				d.Log[0].Response != nil {
				t.Errorf("the try is logged as %+v", d.Log)
			}

			select {
			case got := <-reached:
				t.Errorf("%s was connected to", got)
			default:
			}
		})
	}
}

// A name with a public and an internal address leads to the public one or nowhere.
func TestEveryAddressOfANameIsChecked(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) {})

	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}

	h := newHarness(t, func(c *Config) {
		c.HTTP = HTTP{
			Resolver: resolver(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.1")),
			Allow:    []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		}
	})
	e := h.at("http://mixed.test:" + u.Port())
	h.postOnce()

	if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliverySucceeded {
		t.Errorf("the try is logged as %+v", d.Log)
	}
}

func TestGuard(t *testing.T) {
	strict := ssrf.New(nil)
	for _, address := range []string{
		"93.184.215.14:443",
		"93.184.215.14:8443",
		"[2606:2800:220:1::1]:443",
		"[::ffff:93.184.215.14]:443",
	} {
		if err := strict.Control("tcp4", address, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}

	for network, address := range map[string]string{
		"udp4": "93.184.215.14:443",
		"unix": "/run/socket",
		"tcp4": "example.com:443",
		"tcp6": "[fe80::1%eth0]:443",
	} {
		if err := strict.Control(network, address, nil); err == nil {
			t.Errorf("%s %s is let through", network, address)
		}
	}

	open := ssrf.New([]netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"),
		netip.MustParsePrefix("::ffff:10.2.0.0/112"),
		netip.MustParsePrefix("fd00:1::/32"),
	})
	for address, allowed := range map[string]bool{
		"10.1.2.3:80":          true,
		"[::ffff:10.1.2.3]:80": true,
		"10.2.0.9:80":          true,
		"10.3.0.1:80":          false,
		"[fd00:1::5]:80":       true,
		"[fd00:2::5]:80":       false,
		"127.0.0.1:80":         false,
		"93.184.215.14:80":     true,
	} {
		if err := open.Control(
			"tcp4", address, nil,
		); (err == nil) != allowed ||
			err != nil && !errors.Is(err, guardian.ErrProhibitedIP) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestNoProxyIsUsed(t *testing.T) {
	// The environment is read once per process, so that setting it here would prove nothing: look
	// at the transport.
	transport, ok := newClient(ssrf.New(nil), HTTP{}).Transport.(*http.Transport)
	if !ok || transport.Proxy != nil || transport.TLSClientConfig.InsecureSkipVerify ||
		!transport.DisableCompression {
		t.Errorf("the transport is %+v", transport)
	}
}

func TestConnectionsAreKeptWithinOneRun(t *testing.T) {
	peers := map[string]int{}
	url := serve(
		t,
		func(w http.ResponseWriter, q *http.Request) { peers[q.RemoteAddr]++; w.WriteHeader(204) },
	).URL
	h := newHarness(t, func(c *Config) { c.PerEndpoint, c.Concurrency = 1, 1 })
	e := h.at(url)

	ev := event.Event{ID: "evt_1", Envelope: []byte("{}")}
	for range 5 {
		if a, ok := h.post(
			t.Context(), webhook.Delivery{ID: "1"}, e, ev, []string{secretA},
		); !ok ||
			!AttemptSucceeded(a.attempt) {
			t.Fatalf("the try is %+v", a)
		}
	}

	h.client.CloseIdleConnections()

	if len(peers) != 1 {
		t.Errorf("%d connections for five deliveries", len(peers))
	}
}

// looksNumeric reports whether a host is written as a number, in any notation that some resolver takes.
func looksNumeric(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := labels[len(labels)-1]
	_, err := strconv.ParseUint(last, 0, 64)

	return err == nil
}
