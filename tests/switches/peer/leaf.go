package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Leaf is what a test says of a switch; the tables follow from it. tests/switches/README.md has where each table and
// field is known from.
type Leaf struct {
	Hostname string `json:"hostname"`
	Hwsku    string `json:"hwsku"`
	Platform string `json:"platform"`
	Mac      string `json:"mac"`
	Ports    []Port `json:"ports"`
	// "azure": what qos_config.j2 makes where a model brings nothing of its own, with `pfcwd start_default`. "none": no
	// QoS at all.
	Qos string `json:"qos"`
	// Tables as a config_db.json has them; each one takes the place of the whole table.
	Config map[string]map[string]map[string]any `json:"config"`
	// Rows on top, by database and key: fields to set, or null for a row that is not there.
	Rows map[string]map[string]Row `json:"rows"`
}

type Port struct {
	Name  string `json:"name"`
	Alias string `json:"alias"`
	Speed int    `json:"speed"` // Mb/s
	Lanes int    `json:"lanes"`
	Fec   string `json:"fec"`
	Mtu   int    `json:"mtu"`
	Down  bool   `json:"down"` // admin_status
	// What LLDP says is at the other end.
	Neighbour *Neighbour `json:"neighbour"`
}

type Neighbour struct {
	System      string `json:"system"`
	Chassis     string `json:"chassis"` // a MAC address
	Port        string `json:"port"`
	PortSubtype string `json:"portSubtype"` // 3 a MAC address, 5 an interface's name (IEEE 802.1AB, LldpPortIdSubtype)
	Description string `json:"description"`
}

const queuesOfAPort = 8

// SONiC writes the numbers of the chip's objects so. The first are ports' (SAI object type 1), the others queues' (0x15).
func portOid(index int) string { return fmt.Sprintf("oid:0x1%012x", index+2) }
func queueOid(index, queue int) string {
	return fmt.Sprintf("oid:0x15%012x", 0x1000+index*queuesOfAPort+queue)
}

// portStatistics are the names in portsorch.cpp's port_stat_ids, but those of sizes of packets and of IEEE 802.3's MIB.
func portStatistics() []string {
	var names []string
	add := func(form string, values ...any) { names = append(names, "SAI_PORT_STAT_"+fmt.Sprintf(form, values...)) }
	for _, way := range []string{"IN", "OUT"} {
		for _, what := range []string{"OCTETS", "UCAST_PKTS", "NON_UCAST_PKTS", "DISCARDS", "ERRORS", "MULTICAST_PKTS", "BROADCAST_PKTS"} {
			add("IF_%s_%s", way, what)
		}
		add("%s_DROPPED_PKTS", way)
	}
	for _, way := range []string{"RX", "TX"} {
		for priority := range 8 {
			add("PFC_%d_%s_PKTS", priority, way)
		}
		add("PAUSE_%s_PKTS", way)
		add("ETHER_%s_OVERSIZE_PKTS", way)
	}
	for _, what := range []string{"CORRECTABLE_FRAMES", "NOT_CORRECTABLE_FRAMES", "SYMBOL_ERRORS", "CORRECTED_BITS"} {
		add("IF_IN_FEC_%s", what)
	}
	for bin := range 16 {
		add("IF_IN_FEC_CODEWORD_ERRORS_S%d", bin)
	}
	add("IF_IN_UNKNOWN_PROTOS")
	add("IF_OUT_QLEN")
	add("ETHER_STATS_JABBERS")
	add("ETHER_STATS_FRAGMENTS")
	add("ETHER_STATS_UNDERSIZE_PKTS")
	add("DOT3_STATS_FCS_ERRORS")
	return names
}

// queueStatistics: portsorch.cpp's queue_stat_ids and wred_queue_stat_ids.
func queueStatistics() []string {
	var names []string
	for _, what := range []string{"PACKETS", "BYTES", "DROPPED_PACKETS", "DROPPED_BYTES", "WRED_ECN_MARKED_PACKETS",
		"WRED_ECN_MARKED_BYTES", "WRED_DROPPED_PACKETS", "WRED_DROPPED_BYTES", "SHARED_WATERMARK_BYTES"} {
		names = append(names, "SAI_QUEUE_STAT_"+what)
	}
	return names
}

func zeros(names []string) Row {
	row := Row{}
	for _, name := range names {
		row[name] = "0"
	}
	return row
}

// Rows that are alike on all ports of all switches.
var (
	noPortCounts  = zeros(portStatistics())
	noQueueCounts = zeros(queueStatistics())
	// A watched queue has these in the same row (pfcactionhandler.cpp, pfcwdsworch.cpp); times are in microseconds.
	noWatchedCounts = func() Row {
		row := zeros(append(queueStatistics(), "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED",
			"PFC_WD_QUEUE_STATS_TX_PACKETS", "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS", "PFC_WD_QUEUE_STATS_RX_PACKETS",
			"PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS"))
		row["PFC_WD_STATUS"] = "operational"
		row["PFC_WD_ACTION"] = "drop"
		row["PFC_WD_DETECTION_TIME"] = "200000"
		row["PFC_WD_RESTORATION_TIME"] = "200000"
		return row
	}()
	noRates = Row{"RX_BPS": "0", "TX_BPS": "0", "RX_PPS": "0", "TX_PPS": "0", "FEC_PRE_BER": "0", "FEC_POST_BER": "0"}
)

// writer fills a store and keeps the first error.
type writer struct {
	store Store
	err   error
}

func (w *writer) set(database, key string, fields Row) {
	if w.err == nil && len(fields) > 0 {
		w.err = w.store.Set(database, key, fields)
	}
}

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// Fill writes the tables of a switch that booted at `booted` and whose ports came up then.
func Fill(store Store, leaf Leaf, booted time.Time) error {
	w := &writer{store: store}
	w.set("CONFIG_DB", "DEVICE_METADATA|localhost", Row{"hostname": leaf.Hostname, "hwsku": orElse(leaf.Hwsku, "generic"),
		"platform": orElse(leaf.Platform, "x86_64-generic-r0"), "mac": orElse(leaf.Mac, "52:54:00:00:00:01"), "type": "LeafRouter",
		"buffer_model": "traditional"})
	w.set("CONFIG_DB", "CONFIG_DB_INITIALIZED", Row{"NULL": "1"})
	w.set("APPL_DB", "LLDP_LOC_CHASSIS", Row{"lldp_loc_chassis_id": orElse(leaf.Mac, "52:54:00:00:00:01"),
		"lldp_loc_chassis_id_subtype": "4", "lldp_loc_sys_name": leaf.Hostname, "lldp_loc_sys_desc": "SONiC Software Version",
		"lldp_loc_man_addr": "", "lldp_loc_sys_cap_supported": "28 00", "lldp_loc_sys_cap_enabled": "28 00"})
	names, queues, queuePorts, queueIndexes := Row{}, Row{}, Row{}, Row{}
	for index, port := range leaf.Ports {
		writePort(w, index, port, booted)
		names[port.Name] = portOid(index)
		for queue := range queuesOfAPort {
			oid := queueOid(index, queue)
			queues[fmt.Sprintf("%s:%d", port.Name, queue)] = oid
			queuePorts[oid], queueIndexes[oid] = portOid(index), strconv.Itoa(queue)
		}
	}
	w.set("APPL_DB", "PORT_TABLE:PortConfigDone", Row{"count": strconv.Itoa(len(leaf.Ports))})
	w.set("APPL_DB", "PORT_TABLE:PortInitDone", Row{"lanes": "0"})
	w.set("COUNTERS_DB", "COUNTERS_PORT_NAME_MAP", names)
	w.set("COUNTERS_DB", "COUNTERS_QUEUE_NAME_MAP", queues)
	w.set("COUNTERS_DB", "COUNTERS_QUEUE_PORT_MAP", queuePorts)
	w.set("COUNTERS_DB", "COUNTERS_QUEUE_INDEX_MAP", queueIndexes)
	if leaf.Qos != "none" {
		writeAzure(w, leaf.Ports)
	}
	writeConfig(w, leaf.Config)
	for database, rows := range leaf.Rows {
		for key, fields := range rows {
			if err := change(store, database, key, fields); err != nil && w.err == nil {
				w.err = err
			}
		}
	}
	if w.err == nil {
		w.err = writeCounters(store, leaf)
	}
	return w.err
}

func writePort(w *writer, index int, port Port, booted time.Time) {
	admin := "up"
	if port.Down {
		admin = "down"
	}
	lanes := make([]string, max(port.Lanes, 1))
	for lane := range lanes {
		lanes[lane] = strconv.Itoa(index*len(lanes) + lane + 1)
	}
	config := Row{"admin_status": admin, "index": strconv.Itoa(index + 1), "lanes": strings.Join(lanes, ",")}
	for field, value := range map[string]string{"alias": port.Alias, "fec": port.Fec, "speed": number(port.Speed), "mtu": number(port.Mtu)} {
		if value != "" {
			config[field] = value
		}
	}
	w.set("CONFIG_DB", "PORT|"+port.Name, config)
	// orchagent keeps in APPL_DB what the port is, beside what it was told to be (portsorch.cpp).
	w.set("APPL_DB", "PORT_TABLE:"+port.Name, config)
	w.set("APPL_DB", "PORT_TABLE:"+port.Name, Row{"oper_status": admin, "flap_count": "1", "last_up_time": stamp(booted)})
	state := Row{"state": "ok", "netdev_oper_status": admin, "admin_status": admin, "mtu": number(port.Mtu),
		"host_tx_ready": "true", "supported_fecs": "none,rs,fc,auto", "supported_speeds": number(port.Speed)}
	if port.Speed != 0 {
		state["speed"] = number(port.Speed)
	}
	if port.Fec != "" {
		state["fec"] = port.Fec
	}
	w.set("STATE_DB", "PORT_TABLE|"+port.Name, state)
	if port.Neighbour != nil {
		writeNeighbour(w, port.Name, *port.Neighbour)
	}
}

// sonic-dbsyncd, lldp_syncd/daemon.py.
func writeNeighbour(w *writer, port string, n Neighbour) {
	w.set("APPL_DB", "LLDP_ENTRY_TABLE:"+port, Row{"lldp_rem_sys_name": n.System, "lldp_rem_chassis_id": n.Chassis,
		"lldp_rem_chassis_id_subtype": "4", "lldp_rem_port_id": n.Port, "lldp_rem_port_id_subtype": orElse(n.PortSubtype, "3"),
		"lldp_rem_port_desc": n.Description, "lldp_rem_sys_desc": "", "lldp_rem_man_addr": "", "lldp_rem_index": "1",
		"lldp_rem_time_mark": "0", "lldp_rem_sys_cap_supported": "80 00", "lldp_rem_sys_cap_enabled": "80 00"})
}

func number(value int) string {
	if value == 0 {
		return ""
	}
	return strconv.Itoa(value)
}

// As strftime's "%a %b %d %H:%M:%S %Y" in UTC (portsorch.cpp, updateDbPortFlapCount).
func stamp(at time.Time) string { return at.UTC().Format("Mon Jan 02 15:04:05 2006") }

// writeAzure: sonic-buildimage, files/build_templates/qos_config.j2 and buffers_config.j2; sonic-utilities,
// pfcwd/main.py, start_default.
func writeAzure(w *writer, ports []Port) {
	dscp, identity := Row{}, Row{}
	for value := range 64 {
		dscp[strconv.Itoa(value)] = "1"
	}
	for value, class := range map[string]string{"3": "3", "4": "4", "5": "2", "8": "0", "46": "5", "48": "6"} {
		dscp[value] = class
	}
	for class := range 8 {
		identity[strconv.Itoa(class)] = strconv.Itoa(class)
	}
	w.set("CONFIG_DB", "DSCP_TO_TC_MAP|AZURE", dscp)
	w.set("CONFIG_DB", "TC_TO_QUEUE_MAP|AZURE", identity)
	w.set("CONFIG_DB", "MAP_PFC_PRIORITY_TO_QUEUE|AZURE", identity)
	w.set("CONFIG_DB", "TC_TO_PRIORITY_GROUP_MAP|AZURE", Row{"0": "0", "1": "0", "2": "0", "3": "3", "4": "4", "5": "0", "6": "0", "7": "7"})
	w.set("CONFIG_DB", "SCHEDULER|scheduler.0", Row{"type": "DWRR", "weight": "14"})
	w.set("CONFIG_DB", "SCHEDULER|scheduler.1", Row{"type": "DWRR", "weight": "15"})
	wred := Row{"ecn": "ecn_all"}
	for _, colour := range []string{"green", "yellow", "red"} {
		wred["wred_"+colour+"_enable"] = "true"
		wred[colour+"_min_threshold"] = "1048576"
		wred[colour+"_max_threshold"] = "2097152"
		wred[colour+"_drop_probability"] = "5"
	}
	w.set("CONFIG_DB", "WRED_PROFILE|AZURE_LOSSLESS", wred)
	w.set("CONFIG_DB", "PORT_QOS_MAP|global", Row{"dscp_to_tc_map": "AZURE"})
	w.set("CONFIG_DB", "PFC_WD|GLOBAL", Row{"POLL_INTERVAL": strconv.Itoa(min(200*steps(ports), 1000))})
	wait := strconv.Itoa(200 * steps(ports))
	watched, cables := Row{"action": "drop", "detection_time": wait, "restoration_time": wait}, Row{}
	for _, port := range ports {
		writeAzurePort(w, port.Name, watched)
		cables[port.Name] = "40m"
	}
	w.set("CONFIG_DB", "CABLE_LENGTH|AZURE", cables)
	writeBuffers(w, ports)
}

// buffers_config.j2, and what sonic-swss' buffermgr makes of pfc_enable, speed and CABLE_LENGTH: here one for all speeds.
func writeBuffers(w *writer, ports []Port) {
	for pool, row := range map[string]Row{
		"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "33004032"},
		"egress_lossless_pool":  {"type": "egress", "mode": "static", "size": "33004032"},
		"egress_lossy_pool":     {"type": "egress", "mode": "dynamic", "size": "26284032"},
	} {
		w.set("CONFIG_DB", "BUFFER_POOL|"+pool, row)
	}
	for profile, row := range map[string]Row{
		"ingress_lossy_profile":   {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"},
		"pg_lossless_40m_profile": {"pool": "ingress_lossless_pool", "size": "185344", "xon": "19456", "xoff": "165888", "dynamic_th": "0"},
		"egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "1518", "static_th": "33004032"},
		"egress_lossy_profile":    {"pool": "egress_lossy_pool", "size": "1518", "dynamic_th": "3"},
	} {
		w.set("CONFIG_DB", "BUFFER_PROFILE|"+profile, row)
	}
	for _, port := range ports {
		for key, profile := range map[string]string{
			"BUFFER_PG|" + port.Name + "|0":      "ingress_lossy_profile",
			"BUFFER_PG|" + port.Name + "|3-4":    "pg_lossless_40m_profile",
			"BUFFER_QUEUE|" + port.Name + "|0-2": "egress_lossy_profile",
			"BUFFER_QUEUE|" + port.Name + "|3-4": "egress_lossless_profile",
			"BUFFER_QUEUE|" + port.Name + "|5-7": "egress_lossy_profile",
		} {
			w.set("CONFIG_DB", key, Row{"profile": profile})
		}
	}
}

// pfcwd/main.py: milliseconds grow by the ports there are, one step for each 32.
func steps(ports []Port) int { return max(1, (len(ports)-1)/32+1) }

// Rows that are alike on all ports.
var (
	azurePort = Row{"dscp_to_tc_map": "AZURE", "tc_to_queue_map": "AZURE", "tc_to_pg_map": "AZURE", "pfc_to_queue_map": "AZURE",
		"pfc_enable": "3,4", "pfcwd_sw_enable": "3,4"}
	azureQueue    = Row{"scheduler": "scheduler.0"}
	azureLossless = Row{"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}
)

func writeAzurePort(w *writer, port string, watched Row) {
	w.set("CONFIG_DB", "PORT_QOS_MAP|"+port, azurePort)
	for _, queue := range []string{"0", "1", "2", "5", "6"} {
		w.set("CONFIG_DB", "QUEUE|"+port+"|"+queue, azureQueue)
	}
	for _, queue := range []string{"3", "4"} {
		w.set("CONFIG_DB", "QUEUE|"+port+"|"+queue, azureLossless)
	}
	w.set("CONFIG_DB", "PFC_WD|"+port, watched)
}

// writeConfig takes tables as sonic-cfggen writes a config_db.json: a list is a field with "@" behind its name in redis.
func writeConfig(w *writer, tables map[string]map[string]map[string]any) {
	for table, rows := range tables {
		keys, err := w.store.Keys("CONFIG_DB", table+"|*")
		for _, key := range keys {
			if err == nil {
				err = w.store.Delete("CONFIG_DB", key)
			}
		}
		if err != nil && w.err == nil {
			w.err = err
		}
		for key, fields := range rows {
			row := Row{}
			for field, value := range fields {
				if list, many := value.([]any); many {
					row[field+"@"] = strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ",")
				} else {
					row[field] = fmt.Sprint(value)
				}
			}
			if len(row) == 0 {
				row["NULL"] = "NULL" // as SONiC keeps a row without fields
			}
			w.set("CONFIG_DB", table+"|"+key, row)
		}
	}
}

// writeCounters comes last: which queues are watched is in the tables.
func writeCounters(store Store, leaf Leaf) error {
	w := &writer{store: store}
	for index, port := range leaf.Ports {
		w.set("COUNTERS_DB", "COUNTERS:"+portOid(index), noPortCounts)
		w.set("COUNTERS_DB", "RATES:"+portOid(index), noRates)
		watched, err := watchedQueues(store, port.Name)
		if err != nil {
			return err
		}
		for queue := range queuesOfAPort {
			row := noQueueCounts
			if watched[strconv.Itoa(queue)] {
				row = noWatchedCounts
			}
			w.set("COUNTERS_DB", "COUNTERS:"+queueOid(index, queue), row)
		}
	}
	return w.err
}

// The watchdog looks at the queues of pfcwd_sw_enable, where the port has an entry in PFC_WD (pfcwdorch.cpp).
func watchedQueues(store Store, port string) (map[string]bool, error) {
	watched := map[string]bool{}
	entry, err := store.Row("CONFIG_DB", "PFC_WD|"+port)
	if err != nil || len(entry) == 0 {
		return watched, err
	}
	qos, err := store.Row("CONFIG_DB", "PORT_QOS_MAP|"+port)
	for _, queue := range strings.Split(qos["pfcwd_sw_enable"], ",") {
		watched[queue] = true
	}
	return watched, err
}

// change sets the fields of a row; without any it takes the row away.
func change(store Store, database, key string, fields Row) error {
	if _, known := databases[database]; !known {
		return fmt.Errorf("%q is none of SONiC's databases", database)
	}
	if len(fields) == 0 {
		return store.Delete(database, key)
	}
	return store.Set(database, key, fields)
}

func (l *Leaf) UnmarshalJSON(text []byte) error {
	type plain Leaf
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*plain)(l)); err != nil {
		return fmt.Errorf("a leaf: %w", err)
	}
	for _, port := range l.Ports {
		if port.Name == "" {
			return fmt.Errorf("a port of leaf %q has no name", l.Hostname)
		}
	}
	return nil
}
