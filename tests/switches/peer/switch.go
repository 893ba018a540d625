package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// SwitchConfig is one switch of the file that --config names.
type SwitchConfig struct {
	Name            string `json:"name"`
	Dialect         string `json:"dialect"` // "sonic", the default, or "openconfig"
	Port            int    `json:"port"`    // 0: a free one
	Certificate     string `json:"certificate"`
	Key             string `json:"key"`
	ClientAuthority string `json:"clientAuthority"` // clients have to bring a certificate of it
	Username        string `json:"username"`        // empty: no login
	Password        string `json:"password"`
	RedisPrefix     string `json:"redisPrefix"`
	// As sonic-gnmi of 202311 and before: a table without a row fails the whole Get, and the whole subscription.
	EmptyTableFails bool `json:"emptyTableFails"`
	// Seconds after which a connection without calls is closed, and streams at most: sonic-gnmi's --idle_conn_duration and
	// --threshold, whose defaults are 5 and 100.
	IdleSeconds int  `json:"idleSeconds"`
	Threshold   int  `json:"threshold"`
	Leaf        Leaf `json:"leaf"`
}

// Asked counts what clients did.
type Asked struct {
	Connections, Capabilities, Gets, Paths, Subscribes, RefusedLogins atomic.Int64
}

// A Switch is one that answers.
type Switch struct {
	config SwitchConfig
	store  Store
	asked  Asked
	gate   *gate

	mu          sync.Mutex
	broken      Faults
	brokenSince chan struct{} // closed when faults change
	booted      time.Time
	names       *portNames // read once, as sonic-gnmi does
	streams     map[*streaming]string
	server      *grpc.Server
	running     *rates
}

func newSwitch(config SwitchConfig, store Store) (*Switch, error) {
	s := &Switch{config: config, store: store, brokenSince: make(chan struct{}), streams: map[*streaming]string{}}
	if s.config.Threshold == 0 {
		s.config.Threshold = 100
	}
	if s.config.IdleSeconds == 0 {
		s.config.IdleSeconds = 5
	}
	s.booted = time.Now()
	s.running = newRates(s)
	if err := Fill(store, config.Leaf, s.booted); err != nil {
		return nil, fmt.Errorf("switch %s: %w", config.Name, err)
	}
	if _, err := s.tlsConfig(config.Certificate, config.Key); err != nil {
		return nil, fmt.Errorf("switch %s: %w", config.Name, err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", config.Port))
	if err != nil {
		return nil, fmt.Errorf("switch %s: %w", config.Name, err)
	}
	s.gate = newGate(listener, &s.asked)
	return s, s.serve()
}

func (s *Switch) tlsConfig(certificate, key string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if s.config.ClientAuthority != "" {
		text, err := os.ReadFile(s.config.ClientAuthority)
		if err != nil {
			return nil, err
		}
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(text)
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// serve makes a new server behind the same port; connections of the one before are closed.
func (s *Switch) serve() error {
	faults := s.faults()
	certificate, key := orElse(faults.Certificate, s.config.Certificate), orElse(faults.Key, s.config.Key)
	config, err := s.tlsConfig(certificate, key)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: time.Duration(s.config.IdleSeconds) * time.Second}),
		// telemetry.go; its older versions keep gRPC's five minutes.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 20 * time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(4<<20), grpc.MaxSendMsgSize(4<<20), grpc.NumStreamWorkers(0))
	if faults.Model != "none" {
		if s.config.Dialect == "openconfig" {
			answering, err := newOpenConfig(s)
			if err != nil {
				return err
			}
			pb.RegisterGNMIServer(server, answering)
		} else {
			pb.RegisterGNMIServer(server, &sonic{s: s})
		}
	}
	s.mu.Lock()
	old := s.server
	s.server = server
	s.mu.Unlock()
	door := s.gate.newDoor()
	if old != nil {
		go old.Stop()
	}
	go server.Serve(door)
	return nil
}

func (s *Switch) faults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

func (s *Switch) bootTime() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.booted
}

func (s *Switch) portNames() (portNames, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		names, err := readPortNames(s.store)
		if err != nil {
			return names, err
		}
		s.names = &names
	}
	return *s.names, nil
}

// Break sets what is wrong.
func (s *Switch) Break(faults Faults) error {
	if err := faults.check(); err != nil {
		return err
	}
	if faults.Certificate != "" {
		if _, err := s.tlsConfig(faults.Certificate, faults.Key); err != nil {
			return err
		}
	}
	s.mu.Lock()
	before := s.broken
	s.broken = faults
	close(s.brokenSince)
	s.brokenSince = make(chan struct{})
	s.mu.Unlock()
	s.gate.stall(faults.Stall)
	if before.Certificate != faults.Certificate || before.Model != faults.Model || faults.Stall == "connections" || faults.Stall == "down" {
		return s.serve()
	}
	return nil
}

// CloseStreams ends every Subscribe call under way.
func (s *Switch) CloseStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for call := range s.streams {
		call.end("Disposed")
	}
}

// Restart is a boot: counters begin at zero, ports have come up once, and nobody answers for a while.
func (s *Switch) Restart(away time.Duration) error {
	s.gate.stall("down")
	if err := s.serve(); err != nil {
		return err
	}
	s.mu.Lock()
	s.booted = time.Now()
	s.names = nil
	s.mu.Unlock()
	s.running.stop()
	if err := s.reset(); err != nil {
		return err
	}
	time.Sleep(away)
	s.gate.stall(s.faults().Stall)
	return nil
}

// reset brings counters and flaps to what they are after a boot.
func (s *Switch) reset() error {
	for _, pattern := range []string{"COUNTERS:*", "RATES:*"} {
		keys, err := s.store.Keys("COUNTERS_DB", pattern)
		for _, key := range keys {
			if err == nil {
				err = s.store.Delete("COUNTERS_DB", key)
			}
		}
		if err != nil {
			return err
		}
	}
	if err := writeCounters(s.store, s.config.Leaf); err != nil {
		return err
	}
	for _, port := range s.config.Leaf.Ports {
		key := "PORT_TABLE:" + port.Name
		if err := s.store.DeleteFields("APPL_DB", key, "last_down_time"); err != nil {
			return err
		}
		if err := s.store.Set("APPL_DB", key, Row{"flap_count": "1", "last_up_time": stamp(s.bootTime())}); err != nil {
			return err
		}
	}
	return nil
}

// hold waits out what keeps the switch from answering.
func (s *Switch) hold(ctx context.Context) (Faults, error) {
	for {
		s.mu.Lock()
		faults, mended := s.broken, s.brokenSince
		s.mu.Unlock()
		if faults.Stall == "" {
			if faults.Latency > 0 {
				select {
				case <-time.After(time.Duration(faults.Latency) * time.Millisecond):
				case <-ctx.Done():
					return faults, ctx.Err()
				}
			}
			return faults, nil
		}
		select {
		case <-mended:
		case <-ctx.Done():
			return faults, ctx.Err()
		}
	}
}

// enter is hold, and asks who it is.
func (s *Switch) enter(ctx context.Context) (Faults, error) {
	faults, err := s.hold(ctx)
	if err != nil {
		return faults, err
	}
	if s.config.Username == "" && !faults.RefuseLogin {
		return faults, nil
	}
	said, _ := metadata.FromIncomingContext(ctx)
	first := func(name string) string {
		if values := said.Get(name); len(values) > 0 {
			return values[0]
		}
		return ""
	}
	if faults.RefuseLogin || first("username") != s.config.Username || first("password") != s.config.Password {
		s.asked.RefusedLogins.Add(1)
		return faults, status.Error(codes.Unauthenticated, "Unauthenticated")
	}
	return faults, nil
}
