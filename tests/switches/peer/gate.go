package main

import (
	"net"
	"sync"
)

// A gate keeps a switch's port over restarts, so that nobody else gets it meanwhile, and decides what becomes of those
// who knock.
type gate struct {
	listener net.Listener
	asked    *Asked

	mu      sync.Mutex
	current *door
	how     string // Faults.Stall
	held    []net.Conn
}

func newGate(listener net.Listener, asked *Asked) *gate {
	g := &gate{listener: listener, asked: asked}
	go g.run()
	return g
}

func (g *gate) run() {
	for {
		connection, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.asked.Connections.Add(1)
		g.mu.Lock()
		switch {
		case g.how == "down":
			connection.Close()
		case g.how == "connections":
			g.held = append(g.held, connection)
		default:
			g.current.hand(connection)
		}
		g.mu.Unlock()
	}
}

func (g *gate) stall(how string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how = how
	if how != "connections" {
		for _, connection := range g.held {
			connection.Close()
		}
		g.held = nil
	}
}

func (g *gate) newDoor() *door {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current != nil {
		g.current.Close()
	}
	g.current = &door{address: g.listener.Addr(), connections: make(chan net.Conn, 1024), closed: make(chan struct{})}
	return g.current
}

// A door is the listener of one server behind the gate.
type door struct {
	address     net.Addr
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

func (d *door) hand(connection net.Conn) {
	select {
	case d.connections <- connection:
	default:
		connection.Close()
	}
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case connection := <-d.connections:
		return connection, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *door) Addr() net.Addr { return d.address }
