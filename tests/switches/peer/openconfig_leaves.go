package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
)

// What an OpenConfig switch says of the same tables: leaves of openconfig-interfaces, -if-ethernet, -lldp and -qos
// (openconfig/public, release/models, at 94f5896). These models have no PFC and no watchdog.

// A leaf of a model, with its whole path.
type modelLeaf struct {
	path  []*pb.PathElem
	value *pb.TypedValue
}

type leaves struct {
	all  []modelLeaf
	base []*pb.PathElem
}

// below says where the next leaves lie: "interfaces", "interface[name=Ethernet0]", "state". Keys may have slashes.
func (l *leaves) below(elements ...string) { l.base = pathOf(elements...) }

func pathOf(elements ...string) []*pb.PathElem {
	var path []*pb.PathElem
	for _, element := range elements {
		name, key, keyed := strings.Cut(element, "[")
		part := &pb.PathElem{Name: name}
		if keyed {
			field, value, _ := strings.Cut(strings.TrimSuffix(key, "]"), "=")
			part.Key = map[string]string{field: value}
		}
		path = append(path, part)
	}
	return path
}

func (l *leaves) add(name string, value *pb.TypedValue) {
	path := append(append([]*pb.PathElem{}, l.base...), &pb.PathElem{Name: name})
	l.all = append(l.all, modelLeaf{path, value})
}

func (l *leaves) text(name, value string) {
	if value != "" {
		l.add(name, stringValue(value))
	}
}

// count passes on a counter that is one; what is missing stays missing.
func (l *leaves) count(name, value string) {
	if number, err := strconv.ParseUint(value, 10, 64); err == nil {
		l.add(name, &pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: number}})
	}
}

var portSpeeds = map[string]string{"10000": "SPEED_10GB", "25000": "SPEED_25GB", "40000": "SPEED_40GB", "50000": "SPEED_50GB",
	"100000": "SPEED_100GB", "200000": "SPEED_200GB", "400000": "SPEED_400GB", "800000": "SPEED_800GB"}

// fecMode: Reed-Solomon is that of IEEE 802.3 clause 119 from 200 Gb/s on, and that of clause 91 below.
func fecMode(fec, speed string) string {
	switch {
	case fec == "rs" && later(speed, "199999") == speed:
		return "FEC_RS544_2X_INTERLEAVE"
	case fec == "rs":
		return "FEC_RS528"
	case fec == "fc":
		return "FEC_FC"
	case fec == "none":
		return "FEC_DISABLED"
	}
	return ""
}

func unixTime(stamp string) string {
	at, err := time.Parse("Mon Jan 02 15:04:05 2006", stamp)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(at.UnixNano(), 10)
}

// later is the larger of two whole numbers.
func later(a, b string) string {
	if len(a) > len(b) || len(a) == len(b) && a > b {
		return a
	}
	return b
}

func modelLeaves(store Store) ([]modelLeaf, error) {
	l := &leaves{}
	names, err := store.Row("COUNTERS_DB", "COUNTERS_PORT_NAME_MAP")
	if err != nil {
		return nil, err
	}
	queues, err := store.Row("COUNTERS_DB", "COUNTERS_QUEUE_NAME_MAP")
	if err != nil {
		return nil, err
	}
	device, err := store.Row("CONFIG_DB", "DEVICE_METADATA|localhost")
	if err != nil {
		return nil, err
	}
	l.below("lldp", "state")
	l.text("system-name", device["hostname"])
	l.text("chassis-id", device["mac"])
	for _, port := range sortedKeys(names) {
		if err := l.port(store, port, names[port]); err != nil {
			return nil, err
		}
		if err := l.neighbour(store, port); err != nil {
			return nil, err
		}
		for queue := range queuesOfAPort {
			counters, err := store.Row("COUNTERS_DB", "COUNTERS:"+queues[fmt.Sprintf("%s:%d", port, queue)])
			if err != nil {
				return nil, err
			}
			l.below("qos", "interfaces", "interface[interface-id="+port+"]", "output", "queues", fmt.Sprintf("queue[name=%d]", queue), "state")
			l.text("name", strconv.Itoa(queue))
			l.count("transmit-pkts", counters["SAI_QUEUE_STAT_PACKETS"])
			l.count("transmit-octets", counters["SAI_QUEUE_STAT_BYTES"])
			l.count("dropped-pkts", counters["SAI_QUEUE_STAT_DROPPED_PACKETS"])
			l.count("ecn-marked-pkts", counters["SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"])
		}
	}
	return l.all, nil
}

func (l *leaves) port(store Store, port, oid string) error {
	state, err := store.Row("APPL_DB", "PORT_TABLE:"+port)
	if err != nil {
		return err
	}
	counters, err := store.Row("COUNTERS_DB", "COUNTERS:"+oid)
	if err != nil {
		return err
	}
	l.below("interfaces", "interface[name="+port+"]", "state")
	l.text("name", port)
	l.count("mtu", state["mtu"])
	l.text("admin-status", strings.ToUpper(state["admin_status"]))
	l.text("oper-status", strings.ToUpper(state["oper_status"]))
	l.count("last-change", later(unixTime(state["last_up_time"]), unixTime(state["last_down_time"])))
	l.below("interfaces", "interface[name="+port+"]", "state", "counters")
	l.count("interface-transitions", state["flap_count"])
	for name, field := range map[string]string{"in-octets": "IF_IN_OCTETS", "out-octets": "IF_OUT_OCTETS", "in-errors": "IF_IN_ERRORS",
		"out-errors": "IF_OUT_ERRORS", "in-discards": "IF_IN_DISCARDS", "out-discards": "IF_OUT_DISCARDS",
		"in-unicast-pkts": "IF_IN_UCAST_PKTS", "out-unicast-pkts": "IF_OUT_UCAST_PKTS", "in-fcs-errors": "DOT3_STATS_FCS_ERRORS"} {
		l.count(name, counters["SAI_PORT_STAT_"+field])
	}
	l.below("interfaces", "interface[name="+port+"]", "ethernet", "state")
	if speed := portSpeeds[state["speed"]]; speed != "" {
		l.text("port-speed", "openconfig-if-ethernet:"+speed)
	}
	if mode := fecMode(state["fec"], state["speed"]); mode != "" {
		l.text("fec-mode", "openconfig-if-ethernet:"+mode)
	}
	l.below("interfaces", "interface[name="+port+"]", "ethernet", "state", "counters")
	for name, field := range map[string]string{"fec-uncorrectable-blocks": "IF_IN_FEC_NOT_CORRECTABLE_FRAMES",
		"fec-corrected-blocks": "IF_IN_FEC_CORRECTABLE_FRAMES", "in-mac-pause-frames": "PAUSE_RX_PKTS", "out-mac-pause-frames": "PAUSE_TX_PKTS"} {
		l.count(name, counters["SAI_PORT_STAT_"+field])
	}
	return nil
}

// openconfig-lldp, port-id-type, by IEEE 802.1AB's numbers.
var portIdTypes = map[string]string{"3": "MAC_ADDRESS", "5": "INTERFACE_NAME", "7": "LOCAL"}

func (l *leaves) neighbour(store Store, port string) error {
	row, err := store.Row("APPL_DB", "LLDP_ENTRY_TABLE:"+port)
	if err != nil || len(row) == 0 {
		return err
	}
	l.below("lldp", "interfaces", "interface[name="+port+"]", "neighbors", "neighbor[id="+row["lldp_rem_index"]+"]", "state")
	l.text("id", row["lldp_rem_index"])
	l.text("system-name", row["lldp_rem_sys_name"])
	l.text("chassis-id", row["lldp_rem_chassis_id"])
	l.text("port-id", row["lldp_rem_port_id"])
	l.text("port-id-type", portIdTypes[row["lldp_rem_port_id_subtype"]])
	l.text("port-description", row["lldp_rem_port_desc"])
	return nil
}

// moduleOf is the module that names the element at `depth`.
func moduleOf(path []*pb.PathElem, depth int) string {
	switch {
	case path[0].GetName() == "interfaces" && depth >= 2 && path[2].GetName() == "ethernet":
		return "openconfig-if-ethernet"
	default:
		return "openconfig-" + path[0].GetName()
	}
}

// jsonOf is a value as RFC 7951 writes it: 64 bit numbers are strings.
func jsonOf(name string, value *pb.TypedValue) any {
	if _, number := value.GetValue().(*pb.TypedValue_UintVal); number {
		if name == "mtu" {
			return value.GetUintVal()
		}
		return strconv.FormatUint(value.GetUintVal(), 10)
	}
	return value.GetStringVal()
}
