package main

import (
	"maps"
	"sort"
	"strings"
	"sync"
)

// A Row is a hash of redis. A stored one is never written to: a change puts another in its place, so that rows that
// are alike, as the counters of a switch that has just started, are kept once.
type Row map[string]string

// An Event says that a row was written ("hset") or lost a field or itself ("hdel", "del"), as redis' keyspace
// notifications do.
type Event struct {
	Key, What string
}

// A Watch is told of every change of the keys it was made for, until it is closed.
type Watch struct {
	Events chan Event
	close  func()
}

func (w *Watch) Close() { w.close() }

// A Store holds the databases of one switch. Keys are whole ones, with the separator of their database in them; a
// pattern is a key, or the beginning of some with a "*" behind it. It may be used from several goroutines.
type Store interface {
	Row(database, key string) (Row, error) // empty where there is none
	Field(database, key, field string) (string, error)
	Keys(database, pattern string) ([]string, error)
	Set(database, key string, fields Row) error // beside the fields that are there
	DeleteFields(database, key string, fields ...string) error
	Delete(database, key string) error
	Watch(database, pattern string) (*Watch, error)
	// Version is another one after each change, where the store can tell.
	Version() (uint64, bool)
}

// sonic-swss-common, common/schema.h; the separators: database_config.json.
var databases = map[string]struct {
	number    int
	separator string
}{
	"APPL_DB":         {0, ":"},
	"ASIC_DB":         {1, ":"},
	"COUNTERS_DB":     {2, ":"},
	"LOGLEVEL_DB":     {3, ":"},
	"CONFIG_DB":       {4, "|"},
	"FLEX_COUNTER_DB": {5, ":"},
	"STATE_DB":        {6, "|"},
}

func matches(pattern, key string) bool {
	if start, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(key, start)
	}
	return pattern == key
}

// memory is a Store without redis: 500 switches with 64 ports each take one process and some hundred megabytes. A row is
// what it was at first, which many share, and what was written since: a counter that runs does not copy all the others.
type memory struct {
	mu        sync.RWMutex
	databases map[string]map[string]entry
	watches   map[*Watch]watched
	version   uint64
}

type entry struct{ first, since Row }

func (e entry) row() Row {
	if len(e.since) == 0 {
		return e.first
	}
	row := maps.Clone(e.first)
	maps.Copy(row, e.since)
	return row
}

type watched struct{ database, pattern string }

func newMemory() *memory {
	return &memory{databases: map[string]map[string]entry{}, watches: map[*Watch]watched{}}
}

func (m *memory) Row(database, key string) (Row, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.databases[database][key].row(), nil
}

func (m *memory) Field(database, key, field string) (string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := m.databases[database][key]
	if value, is := found.since[field]; is {
		return value, nil
	}
	return found.first[field], nil
}

func (m *memory) Keys(database, pattern string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var found []string
	for key := range m.databases[database] {
		if matches(pattern, key) {
			found = append(found, key)
		}
	}
	sort.Strings(found)
	return found, nil
}

func (m *memory) Set(database, key string, fields Row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.databases[database] == nil {
		m.databases[database] = map[string]entry{}
	}
	old := m.databases[database][key]
	if old.first == nil {
		m.databases[database][key] = entry{first: fields}
	} else {
		if old.since = maps.Clone(old.since); old.since == nil {
			old.since = Row{}
		}
		maps.Copy(old.since, fields)
		m.databases[database][key] = old
	}
	m.changed(database, key, "hset")
	return nil
}

func (m *memory) DeleteFields(database, key string, fields ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, there := m.databases[database][key]
	if !there {
		return nil
	}
	row := maps.Clone(old.row())
	for _, field := range fields {
		delete(row, field)
	}
	if len(row) == 0 {
		delete(m.databases[database], key)
		m.changed(database, key, "del")
		return nil
	}
	m.databases[database][key] = entry{first: row}
	m.changed(database, key, "hdel")
	return nil
}

func (m *memory) Delete(database, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.databases[database][key]; there {
		delete(m.databases[database], key)
		m.changed(database, key, "del")
	}
	return nil
}

// Redis drops what a slow reader of notifications does not take, too.
func (m *memory) changed(database, key, what string) {
	m.version++
	for watch, of := range m.watches {
		if of.database == database && matches(of.pattern, key) {
			select {
			case watch.Events <- Event{key, what}:
			default:
			}
		}
	}
}

func (m *memory) Watch(database, pattern string) (*Watch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	watch := &Watch{Events: make(chan Event, 1024)}
	watch.close = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watches, watch)
	}
	m.watches[watch] = watched{database, pattern}
	return watch, nil
}

func (m *memory) Version() (uint64, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.version, true
}
