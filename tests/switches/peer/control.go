package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The control: HTTP on loopback, for whoever plays what happens to the switches.
//
//	GET    /switches                        all of them, what is wrong with each, and what it was asked
//	PUT    /switches/NAME/faults            Faults; what is not in it is mended
//	DELETE /switches/NAME/faults
//	POST   /switches/NAME/counters          {"Ethernet48": {"SAI_PORT_STAT_…": "9"}, "Ethernet48:3": {…}}: they are so now
//	POST   /switches/NAME/rates             the same with numbers: by so much each second, until told otherwise ({} stops)
//	POST   /switches/NAME/flaps             {"Ethernet48": 41}: down and up so many times
//	POST   /switches/NAME/links             {"Ethernet48": false}: down
//	POST   /switches/NAME/rows              {"CONFIG_DB": {"PORT|Ethernet0": {"mtu": "1500"}}}; null deletes a row
//	POST   /switches/NAME/restart           {"awayMs": 300}
//	POST   /switches/NAME/closeStreams
//	GET    /switches/NAME/row?database=…&key=…
type control struct {
	switches map[string]*Switch
	order    []string
}

type told struct {
	Name         string `json:"name"`
	Dialect      string `json:"dialect"`
	Port         int    `json:"port"`
	Faults       Faults `json:"faults"`
	Booted       string `json:"booted"`
	Connections  int64  `json:"connections"`
	Capabilities int64  `json:"capabilities"`
	Gets         int64  `json:"gets"`
	Paths        int64  `json:"paths"`
	Subscribes   int64  `json:"subscribes"`
	Streams      int    `json:"streams"`
	Refused      int64  `json:"refusedLogins"`
}

func (c *control) list(w http.ResponseWriter, _ *http.Request) {
	all := []told{}
	for _, name := range c.order {
		s := c.switches[name]
		s.mu.Lock()
		streams := len(s.streams)
		s.mu.Unlock()
		all = append(all, told{name, s.config.Dialect, s.port(), s.faults(), s.bootTime().UTC().Format(time.RFC3339Nano),
			s.asked.Connections.Load(), s.asked.Capabilities.Load(), s.asked.Gets.Load(), s.asked.Paths.Load(),
			s.asked.Subscribes.Load(), streams, s.asked.RefusedLogins.Load()})
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(all)
}

// body reads what was sent, and nothing that this version does not know.
func body[T any](request *http.Request) (T, error) {
	var value T
	decoder := json.NewDecoder(http.MaxBytesReader(nil, request.Body, 16<<20))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&value)
	return value, err
}

type act func(s *Switch, request *http.Request) error

func with[T any](do func(*Switch, T) error) act {
	return func(s *Switch, request *http.Request) error {
		value, err := body[T](request)
		if err != nil {
			return err
		}
		return do(s, value)
	}
}

func (s *Switch) changeRows(rows map[string]map[string]Row) error {
	for database, byKey := range rows {
		for key, fields := range byKey {
			if err := change(s.store, database, key, fields); err != nil {
				return err
			}
		}
	}
	return nil
}

type restart struct {
	AwayMs int `json:"awayMs"`
}

func (c *control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /switches", c.list)
	for pattern, do := range map[string]act{
		"PUT /switches/{name}/faults":        with((*Switch).Break),
		"DELETE /switches/{name}/faults":     func(s *Switch, _ *http.Request) error { return s.Break(Faults{}) },
		"POST /switches/{name}/counters":     with((*Switch).SetCounters),
		"POST /switches/{name}/rates":        with(func(s *Switch, of map[string]map[string]float64) error { return s.running.set(of) }),
		"POST /switches/{name}/flaps":        with((*Switch).Flap),
		"POST /switches/{name}/links":        with((*Switch).SetLinks),
		"POST /switches/{name}/rows":         with((*Switch).changeRows),
		"POST /switches/{name}/closeStreams": func(s *Switch, _ *http.Request) error { s.CloseStreams(); return nil },
		"POST /switches/{name}/restart": with(func(s *Switch, how restart) error {
			return s.Restart(time.Duration(how.AwayMs) * time.Millisecond)
		}),
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, request *http.Request) {
			s := c.switches[request.PathValue("name")]
			err := fmt.Errorf("there is no switch %q", request.PathValue("name"))
			if s != nil {
				err = do(s, request)
			}
			if err != nil {
				http.Error(w, strings.TrimSpace(err.Error()), http.StatusBadRequest)
			}
		})
	}
	mux.HandleFunc("GET /switches/{name}/row", func(w http.ResponseWriter, request *http.Request) {
		s := c.switches[request.PathValue("name")]
		if s == nil {
			http.Error(w, "there is no such switch", http.StatusNotFound)
			return
		}
		row, err := s.store.Row(request.URL.Query().Get("database"), request.URL.Query().Get("key"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(row)
	})
	return mux
}
