package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"
)

// Faults is what is wrong with a switch, until it is told otherwise. The zero value is a switch that is well.
type Faults struct {
	// "answers": calls are taken and never answered, streams fall silent. "connections": TCP is accepted and nothing more is
	// said, not even the handshake. "down": connections are closed as soon as they come.
	Stall string `json:"stall"`
	// Milliseconds before each answer and each notification.
	Latency int `json:"latency"`
	// "json": no JSON at all. "cut": JSON that ends half way. "type": JSON of another kind than the path has. "numbers":
	// counters that are none. "utf8": bytes that are no text in it.
	Garbage string `json:"garbage"`
	// Half a table: rows and fields that are left out wherever they would be answered; a "*" at the end stands for any rest.
	WithoutRows   []string `json:"withoutRows"`
	WithoutFields []string `json:"withoutFields"`
	// Every second row of a table, in the order of their names.
	HalfOfRows bool `json:"halfOfRows"`
	// Logins are refused, the right ones too.
	RefuseLogin bool `json:"refuseLogin"`
	// Another certificate and its key, as files. Connections that stand are closed.
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	// Streams end after so many notifications.
	CloseAfter int `json:"closeAfter"`
	// It says that it is another switch, in DEVICE_METADATA and by LLDP.
	Hostname string `json:"hostname"`
	// Another model: "vendor" has tables of its own under the same targets, "other" none of them, "none" no gNMI at all.
	Model string `json:"model"`
}

func (f Faults) check() error {
	for _, one := range []struct {
		name, value string
		known       []string
	}{
		{"stall", f.Stall, []string{"", "answers", "connections", "down"}},
		{"garbage", f.Garbage, []string{"", "json", "cut", "type", "numbers", "utf8"}},
		{"model", f.Model, []string{"", "vendor", "other", "none"}},
	} {
		found := false
		for _, word := range one.known {
			found = found || word == one.value
		}
		if !found {
			return fmt.Errorf("%s is %q; it may be %s", one.name, one.value, strings.Join(one.known[1:], ", "))
		}
	}
	if (f.Certificate == "") != (f.Key == "") {
		return fmt.Errorf("certificate and key go together")
	}
	return nil
}

// spoil makes of a right answer the one that this switch gives. `path` is what was asked.
func (f Faults) spoil(database string, path []string, value *pb.TypedValue) *pb.TypedValue {
	if f.Hostname != "" {
		value = f.rename(path, value)
	}
	if f.Model == "vendor" {
		return jsonValue(object{"Smash": object{"interface": object{"status": "connected"}}})
	}
	if f.HalfOfRows || len(f.WithoutRows) > 0 || len(f.WithoutFields) > 0 {
		value = f.thin(value)
	}
	text := value.GetJsonIetfVal()
	switch f.Garbage {
	case "json":
		return raw([]byte("<html><body>502 Bad Gateway</body></html>"))
	case "cut":
		return raw(text[:len(text)/2])
	case "type":
		return raw([]byte(`[3, true, {"PORT": null}]`))
	case "numbers":
		return raw(bytes.ReplaceAll(text, []byte(`:"0"`), []byte(`:"-1e400 banana"`)))
	case "utf8":
		return raw(bytes.ReplaceAll(text, []byte(`"`), []byte("\"\xff\xfe")))
	}
	return value
}

func raw(text []byte) *pb.TypedValue {
	return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: text}}
}

func (f Faults) rename(path []string, value *pb.TypedValue) *pb.TypedValue {
	last := path[len(path)-1]
	if value.GetJsonIetfVal() == nil {
		if last == "hostname" || last == "lldp_loc_sys_name" {
			return stringValue(f.Hostname)
		}
		return value
	}
	if path[0] != "DEVICE_METADATA" {
		return value
	}
	return edited(value, func(at object) {
		if row, table := at["localhost"].(map[string]any); table {
			row["hostname"] = f.Hostname
		} else {
			at["hostname"] = f.Hostname
		}
	})
}

func listed(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matches(pattern, name) {
			return true
		}
	}
	return false
}

// thin leaves out rows and fields. An object of strings is a row, one of objects a table.
func (f Faults) thin(value *pb.TypedValue) *pb.TypedValue {
	if value.GetJsonIetfVal() == nil {
		return value
	}
	return edited(value, func(at object) {
		names := sortedKeys(at)
		sort.Strings(names)
		for index, name := range names {
			row, table := at[name].(map[string]any)
			if !table {
				if listed(f.WithoutFields, name) {
					delete(at, name)
				}
				continue
			}
			if listed(f.WithoutRows, name) || f.HalfOfRows && index%2 == 1 {
				delete(at, name)
				continue
			}
			for field := range row {
				if listed(f.WithoutFields, field) {
					delete(row, field)
				}
			}
		}
	})
}

func edited(value *pb.TypedValue, edit func(object)) *pb.TypedValue {
	var at object
	if err := json.Unmarshal(value.GetJsonIetfVal(), &at); err != nil {
		return value
	}
	edit(at)
	return jsonValue(at)
}
