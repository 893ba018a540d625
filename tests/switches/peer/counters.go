package main

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"
)

// counterRow says where a counter lies: a port's by its name, a queue's as "Ethernet48:3".
func (s *Switch) counterRow(name string) (string, error) {
	table := "COUNTERS_PORT_NAME_MAP"
	if strings.Contains(name, ":") {
		table = "COUNTERS_QUEUE_NAME_MAP"
	}
	row, err := s.store.Row("COUNTERS_DB", table)
	if err != nil {
		return "", err
	}
	if row[name] == "" {
		return "", fmt.Errorf("%s has no port or queue %q", s.config.Name, name)
	}
	return "COUNTERS:" + row[name], nil
}

// SetCounters writes counters as they are to be, by port or queue.
func (s *Switch) SetCounters(values map[string]Row) error {
	for name, fields := range values {
		row, err := s.counterRow(name)
		if err == nil {
			err = s.store.Set("COUNTERS_DB", row, fields)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Flap takes ports down and up so many times, as orchagent writes it (portsorch.cpp, updateDbPortFlapCount): each change
// of state counts, so a flap counts twice.
func (s *Switch) Flap(times map[string]int) error {
	for port, flaps := range times {
		key := "PORT_TABLE:" + port
		row, err := s.store.Row("APPL_DB", key)
		if err != nil {
			return err
		}
		if row["oper_status"] == "" {
			return fmt.Errorf("%s has no port %q", s.config.Name, port)
		}
		count, _ := strconv.Atoi(row["flap_count"])
		now := stamp(time.Now())
		err = s.store.Set("APPL_DB", key, Row{"flap_count": strconv.Itoa(count + 2*flaps), "last_down_time": now, "last_up_time": now})
		if err != nil {
			return err
		}
	}
	return nil
}

// SetLinks brings ports up, or takes them down.
func (s *Switch) SetLinks(up map[string]bool) error {
	for port, is := range up {
		key := "PORT_TABLE:" + port
		row, err := s.store.Row("APPL_DB", key)
		if err != nil {
			return err
		}
		word, field := "down", "last_down_time"
		if is {
			word, field = "up", "last_up_time"
		}
		if row["oper_status"] == "" {
			return fmt.Errorf("%s has no port %q", s.config.Name, port)
		}
		if row["oper_status"] == word {
			continue
		}
		count, _ := strconv.Atoi(row["flap_count"])
		err = s.store.Set("APPL_DB", key, Row{"oper_status": word, "flap_count": strconv.Itoa(count + 1), field: stamp(time.Now())})
		if err == nil {
			err = s.store.Set("STATE_DB", "PORT_TABLE|"+port, Row{"netdev_oper_status": word})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rates make counters run. They are written all at once each `tick`, as SONiC's flex counters are: those of ports
// each second, those of queues every ten.
type rates struct {
	s         *Switch
	mu        sync.Mutex
	perSecond map[string]map[string]float64 // by row and field
	exact     map[string]map[string]float64 // what is behind the point
	last      time.Time
	halt      chan struct{}
}

var tick = time.Second

func newRates(s *Switch) *rates {
	return &rates{s: s}
}

// set takes the place of all that ran of these ports and queues.
func (r *rates) set(values map[string]map[string]float64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.perSecond == nil {
		r.perSecond, r.exact = map[string]map[string]float64{}, map[string]map[string]float64{}
	}
	for name, fields := range values {
		row, err := r.s.counterRow(name)
		if err != nil {
			return err
		}
		r.perSecond[row], r.exact[row] = fields, map[string]float64{}
		if len(fields) == 0 {
			delete(r.perSecond, row)
		}
	}
	if r.halt == nil && len(r.perSecond) > 0 {
		r.halt, r.last = make(chan struct{}), time.Now()
		go r.run(r.halt)
	}
	return nil
}

func (r *rates) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halt != nil {
		close(r.halt)
		r.halt = nil
	}
	r.perSecond, r.exact = nil, nil
}

func (r *rates) run(halt chan struct{}) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-halt:
			return
		case <-ticker.C:
			r.step()
		}
	}
}

func (r *rates) step() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	passed := now.Sub(r.last).Seconds()
	r.last = now
	for row, fields := range r.perSecond {
		news := Row{}
		for field, rate := range fields {
			r.exact[row][field] += rate * passed
			whole := int64(r.exact[row][field])
			r.exact[row][field] -= float64(whole)
			old, err := r.s.store.Field("COUNTERS_DB", row, field)
			if err != nil {
				continue
			}
			if count, is := new(big.Int).SetString(orElse(old, "0"), 10); is && whole > 0 {
				// Counters are 64 bits wide and begin again.
				count.Add(count, big.NewInt(whole)).And(count, new(big.Int).SetUint64(^uint64(0)))
				news[field] = count.String()
			}
		}
		if len(news) > 0 {
			r.s.store.Set("COUNTERS_DB", row, news)
		}
	}
}
