package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"
)

// How sonic-gnmi reads paths and what it answers, as sonic_data_client/db_client.go and virtual_db.go of
// sonic-net/sonic-gnmi do it (at 5ec1c20, 2026-08-19). Its oddities are kept: who reads it has to live with them.
//
//   - The target of the prefix is the database. Elements are TABLE, TABLE/KEY, TABLE/KEY/FIELD, TABLE/KEY/KEY and
//     TABLE/KEY/KEY/FIELD. Whether the last one is a key or a field, the database says.
//   - A row is an object of strings; a table an object of rows; a field a string, not JSON.
//   - A table without rows is {}, and no error. A row that is not there fails the whole Get.
//   - Under COUNTERS and RATES ports go by name, though the database keeps them by number: one port's answer is flat, that
//     of "Ethernet*" has each port's *alias* above its counters. Whatever begins with "Ethernet" and ends with "*" is all.

// A source is a row, or a table's rows, or a field, and how it is called in the answer.
type source struct {
	table, key, field string // key: empty where it is a table or has none
	as, asField       string // in the answer: above the row, and of the one field
	virtual           bool   // by the name of a port
}

func (s source) row(separator string) string {
	if s.key == "" {
		return s.table
	}
	return s.table + separator + s.key
}

// portNames is what the database says of its ports: numbers by name, aliases, and which queues are watched.
type portNames struct {
	oids, queues   Row
	alias, byAlias map[string]string
	watched        map[string][]string // "Ethernet0:3" by port
}

func readPortNames(store Store) (portNames, error) {
	names := portNames{alias: map[string]string{}, byAlias: map[string]string{}, watched: map[string][]string{}}
	var err error
	if names.oids, err = store.Row("COUNTERS_DB", "COUNTERS_PORT_NAME_MAP"); err != nil {
		return names, err
	}
	if names.queues, err = store.Row("COUNTERS_DB", "COUNTERS_QUEUE_NAME_MAP"); err != nil {
		return names, err
	}
	ports, err := store.Keys("CONFIG_DB", "PORT|*")
	for _, key := range ports {
		row, problem := store.Row("CONFIG_DB", key)
		if problem != nil {
			return names, problem
		}
		if alias := row["alias"]; alias != "" {
			port := strings.TrimPrefix(key, "PORT|")
			names.alias[port], names.byAlias[alias] = alias, port
		}
	}
	if err == nil {
		err = names.readWatched(store)
	}
	return names, err
}

// The queues of the first port's pfc_enable, for every port in PFC_WD, by the map named AZURE and no other.
func (n *portNames) readWatched(store Store) error {
	entries, err := store.Keys("CONFIG_DB", "PFC_WD|*")
	if err != nil {
		return err
	}
	maps, err := store.Keys("CONFIG_DB", "PORT_QOS_MAP|*")
	if err != nil {
		return err
	}
	priorities := ""
	for _, key := range maps {
		if !strings.EqualFold(key, "PORT_QOS_MAP|global") {
			row, err := store.Row("CONFIG_DB", key)
			if err != nil {
				return err
			}
			priorities = row["pfc_enable"]
			break
		}
	}
	azure, err := store.Row("CONFIG_DB", "MAP_PFC_PRIORITY_TO_QUEUE|AZURE")
	for _, entry := range entries {
		port := strings.TrimPrefix(entry, "PFC_WD|")
		for _, priority := range strings.Split(priorities, ",") {
			if queue := azure[priority]; queue != "" && !strings.EqualFold(port, "global") {
				n.watched[port] = append(n.watched[port], port+":"+queue)
			}
		}
	}
	return err
}

func (n portNames) called(port string) string { return orElse(n.alias[port], port) }

func (n portNames) port(name string) string { return orElse(n.byAlias[name], name) }

// virtual resolves a path by a port's name. False where there is none: the path is then taken as it stands.
func (n portNames) virtual(elements []string) ([]source, bool) {
	if len(elements) == 1 && elements[0] == "INTERFACE_COUNTERS" {
		var all []source
		for port, oid := range n.oids {
			all = append(all, source{table: "COUNTERS", key: oid, as: port, virtual: true})
		}
		return all, true
	}
	if len(elements) < 2 || len(elements) > 3 || !strings.HasPrefix(elements[1], "Ethernet") {
		return nil, false
	}
	table, name, field := elements[0], elements[1], ""
	if table != "COUNTERS" && table != "RATES" {
		return nil, false
	}
	if len(elements) == 3 {
		field = elements[2]
	}
	all := strings.HasSuffix(name, "*")
	if table == "COUNTERS" && (field == "Queues" || field == "Pfcwd") {
		return n.virtualQueues(name, all, field == "Pfcwd")
	}
	if all {
		var sources []source
		for port, oid := range n.oids {
			sources = append(sources, source{table: table, key: oid, field: field, as: n.called(port), asField: field, virtual: true})
		}
		return sources, true
	}
	oid := n.oids[n.port(name)]
	return []source{{table: table, key: oid, field: field, virtual: true}}, oid != ""
}

func (n portNames) virtualQueues(name string, all, watched bool) ([]source, bool) {
	if !all && n.oids[n.port(name)] == "" {
		return nil, false
	}
	var queues []string
	if watched {
		for _, of := range n.watched {
			queues = append(queues, of...)
		}
	} else {
		for queue := range n.queues {
			queues = append(queues, queue)
		}
	}
	var sources []source
	for _, queue := range queues {
		port, index, _ := strings.Cut(queue, ":")
		as := name + ":" + index
		if all {
			as = n.called(port) + ":" + index
		} else if port != n.port(name) {
			continue
		}
		sources = append(sources, source{table: "COUNTERS", key: n.queues[queue], as: as, virtual: true})
		if !watched {
			const mark = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"
			sources = append(sources, source{table: "PERIODIC_WATERMARKS", key: n.queues[queue], field: mark,
				as: as + ":periodic", asField: mark, virtual: true})
		}
	}
	return sources, true
}

// resolve says where a path's data lies. It refuses only what no path can be.
func resolve(store Store, database string, names portNames, elements []string) ([]source, error) {
	separator := databases[database].separator
	if database == "COUNTERS_DB" {
		if sources, is := names.virtual(elements); is {
			return sources, nil
		}
	}
	var one source
	switch len(elements) {
	case 1:
		return []source{{table: elements[0]}}, nil
	case 2:
		one = source{table: elements[0], key: elements[1]}
	case 3:
		one = source{table: elements[0], key: elements[1] + separator + elements[2]}
	case 4:
		return []source{{table: elements[0], key: elements[1] + separator + elements[2], field: elements[3]}}, nil
	default:
		return nil, fmt.Errorf("Invalid db table Path %v", append([]string{database}, elements...))
	}
	row, err := store.Row(database, one.row(separator))
	if err != nil || len(row) > 0 {
		return []source{one}, err
	}
	// No such row; so the last part may be a field of the one above. If not, it is a row that may come.
	above, last := source{table: one.table}, one.key
	if key, rest, composite := strings.Cut(one.key, separator); composite {
		above.key, last = key, rest
	}
	row, err = store.Row(database, above.row(separator))
	if _, there := row[last]; there {
		above.field = last
		return []source{above}, err
	}
	return []source{one}, err
}

// refuseEmpty is what populateDbtablePath did with a path of one element before e784b6f of 2024-11-11: a table needs a
// key, if only one of another table whose name begins as its own does.
func refuseEmpty(store Store, database string, elements []string) error {
	if len(elements) != 1 {
		return nil
	}
	keys, err := store.Keys(database, elements[0]+"*")
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("Failed to find %s %v <nil> []", database, elements)
	}
	return err
}

// missing is the reason why Get refuses these sources, or empty.
func missing(store Store, database string, sources []source) (string, error) {
	for _, from := range sources {
		if from.virtual || from.key == "" {
			continue
		}
		key := from.row(databases[database].separator)
		if row, err := store.Row(database, key); err != nil || len(row) == 0 {
			return fmt.Sprintf("No valid entry found on %s with key %s", database, key), err
		}
	}
	return "", nil
}

type object map[string]any

// read adds a source's data to the answer.
func (s source) read(store Store, database string, to object) error {
	separator := databases[database].separator
	if s.key == "" && s.field == "" {
		// What of COUNTERS_DB is one row has no separator behind its name.
		pattern := s.table + separator + "*"
		if database == "COUNTERS_DB" && s.table != "COUNTERS" && s.table != "PORT_PHY_ATTR" {
			pattern = s.table
		}
		keys, err := store.Keys(database, pattern)
		for _, key := range keys {
			row, err := store.Row(database, key)
			if err != nil {
				return err
			}
			if key == s.table {
				addFields(to, row)
			} else if len(row) > 0 {
				to[strings.TrimPrefix(key, s.table+separator)] = row
			}
		}
		return err
	}
	if s.asField != "" {
		// One field of each port: whole rows, of 150 counters, would be nearly all that 500 switches in one process do.
		value, err := store.Field(database, s.row(separator), s.field)
		if err == nil && value != "" {
			to[s.as] = Row{s.asField: value}
		}
		return err
	}
	row, err := store.Row(database, s.row(separator))
	switch {
	case err != nil || len(row) == 0:
	case s.as != "":
		to[s.as] = row
	default:
		addFields(to, row)
	}
	return err
}

func addFields(to object, row Row) {
	for field, value := range row {
		to[field] = value
	}
}

// one is the field of one row, where a path asks for it.
func oneField(sources []source) (source, bool) {
	if len(sources) == 1 && sources[0].field != "" && sources[0].asField == "" {
		return sources[0], true
	}
	return source{}, false
}

// readAll answers a path: a string for a field, else an object. The second answer is false where there is nothing.
func readAll(store Store, database string, sources []source) (*pb.TypedValue, bool, error) {
	if field, is := oneField(sources); is {
		row, err := store.Row(database, field.row(databases[database].separator))
		value, there := row[field.field]
		return stringValue(value), there, err
	}
	all := object{}
	for _, from := range sources {
		if err := from.read(store, database, all); err != nil {
			return nil, false, err
		}
	}
	return jsonValue(all), len(all) > 0, nil
}

func stringValue(value string) *pb.TypedValue {
	return &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: value}}
}

func jsonValue(value any) *pb.TypedValue {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings and maps of them
	}
	return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: text}}
}

func elementNames(prefix, path *pb.Path) []string {
	var names []string
	for _, element := range slices.Concat(prefix.GetElem(), path.GetElem()) {
		names = append(names, element.GetName())
	}
	return names
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
