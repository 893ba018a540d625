package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/redis/go-redis/v9"
)

// inRedis is a Store over a real redis-server, with SONiC's numbers of databases. Switches that share a server have a
// prefix each; without one the keys are those of a switch, and every tool that knows SONiC's tables can read them.
type inRedis struct {
	prefix  string
	clients map[string]*redis.Client
}

// One set of connections for all switches of the process.
func connectRedis(address string) (map[string]*redis.Client, error) {
	clients := map[string]*redis.Client{}
	for name, database := range databases {
		clients[name] = redis.NewClient(&redis.Options{Addr: address, DB: database.number})
	}
	// What SONiC sets, for ON_CHANGE (sonic-buildimage, dockers/docker-database, redis.conf).
	if err := clients["CONFIG_DB"].ConfigSet(context.Background(), "notify-keyspace-events", "AKE").Err(); err != nil {
		return nil, fmt.Errorf("redis-server at %s: %w", address, err)
	}
	return clients, nil
}

func (r *inRedis) Row(database, key string) (Row, error) {
	row, err := r.clients[database].HGetAll(context.Background(), r.prefix+key).Result()
	return row, err
}

func (r *inRedis) Field(database, key, field string) (string, error) {
	value, err := r.clients[database].HGet(context.Background(), r.prefix+key, field).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, err
}

func (r *inRedis) Keys(database, pattern string) ([]string, error) {
	// What stands before a "*" may have characters that mean something to redis.
	start, open := strings.CutSuffix(pattern, "*")
	quoted := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(r.prefix + start)
	if open {
		quoted += "*"
	}
	keys, err := r.clients[database].Keys(context.Background(), quoted).Result()
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], r.prefix)
	}
	sort.Strings(keys)
	return keys, err
}

func (r *inRedis) Set(database, key string, fields Row) error {
	return r.clients[database].HSet(context.Background(), r.prefix+key, map[string]string(fields)).Err()
}

func (r *inRedis) DeleteFields(database, key string, fields ...string) error {
	return r.clients[database].HDel(context.Background(), r.prefix+key, fields...).Err()
}

func (r *inRedis) Delete(database, key string) error {
	return r.clients[database].Del(context.Background(), r.prefix+key).Err()
}

func (r *inRedis) Watch(database, pattern string) (*Watch, error) {
	space := fmt.Sprintf("__keyspace@%d__:%s", databases[database].number, r.prefix)
	heard := r.clients[database].PSubscribe(context.Background(), space+pattern)
	if _, err := heard.Receive(context.Background()); err != nil {
		heard.Close()
		return nil, err
	}
	watch := &Watch{Events: make(chan Event, 1024), close: func() { heard.Close() }}
	go func() {
		for message := range heard.Channel() {
			select {
			case watch.Events <- Event{strings.TrimPrefix(message.Channel, space), message.Payload}:
			default:
			}
		}
	}()
	return watch, nil
}

// Others write to a redis-server, too.
func (r *inRedis) Version() (uint64, bool) { return 0, false }
