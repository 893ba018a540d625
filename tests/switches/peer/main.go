// switch-peer answers over gNMI as switches do: up to some hundred of them in one process, each on its own port of
// loopback, with SONiC's tables in a real redis-server or in memory, or by OpenConfig's models. Faults, counters and
// flaps come over a control port. tests/switches/README.md says what is known of what it plays.
//
//	switch-peer --config FILE.json
//
// It prints a line of JSON for each switch that listens, then one with the control's port, and serves until it is ended.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type config struct {
	Control  int            `json:"control"` // port; 0: a free one
	Redis    string         `json:"redis"`   // host:port; empty: tables in memory
	TickMs   int            `json:"tickMs"`  // how often running counters are written; 0: each second
	Switches []SwitchConfig `json:"switches"`
}

func (s *Switch) port() int { return s.gate.listener.Addr().(*net.TCPAddr).Port }

func readConfig(file string) (config, error) {
	var c config
	text, err := os.Open(file)
	if err != nil {
		return c, err
	}
	defer text.Close()
	decoder := json.NewDecoder(text)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

func start(c config) (*control, error) {
	made := &control{switches: map[string]*Switch{}}
	stores := func(string) Store { return newMemory() }
	if c.Redis != "" {
		clients, err := connectRedis(c.Redis)
		if err != nil {
			return nil, err
		}
		stores = func(prefix string) Store { return &inRedis{prefix, clients} }
	}
	for _, one := range c.Switches {
		if one.Name == "" || made.switches[one.Name] != nil {
			return nil, fmt.Errorf("each switch needs a name of its own; %q is not", one.Name)
		}
		if one.Dialect == "" {
			one.Dialect = "sonic"
		}
		if one.Dialect != "sonic" && one.Dialect != "openconfig" {
			return nil, fmt.Errorf("switch %s: dialect %q; it may be sonic, openconfig", one.Name, one.Dialect)
		}
		s, err := newSwitch(one, stores(one.RedisPrefix))
		if err != nil {
			return nil, err
		}
		made.switches[one.Name] = s
		made.order = append(made.order, one.Name)
	}
	return made, nil
}

func run(file string) error {
	c, err := readConfig(file)
	if err != nil {
		return err
	}
	if c.TickMs > 0 {
		tick = time.Duration(c.TickMs) * time.Millisecond
	}
	made, err := start(c)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", c.Control))
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, name := range made.order {
		out.Encode(map[string]any{"name": name, "port": made.switches[name].port()})
	}
	out.Encode(map[string]any{"control": listener.Addr().(*net.TCPAddr).Port})
	go http.Serve(listener, made.handler())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	<-asked
	return nil
}

func main() {
	file := flag.String("config", "", "what to serve, as JSON")
	flag.Parse()
	if err := run(*file); err != nil {
		fmt.Fprintln(os.Stderr, "switch-peer:", err)
		os.Exit(1)
	}
}
