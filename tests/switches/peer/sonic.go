package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// sonic answers as sonic-gnmi does (gnmi_server/server.go, client_subscribe.go).
type sonic struct {
	pb.UnimplementedGNMIServer
	s *Switch
}

var sonicModels = []*pb.ModelData{
	{Name: "openconfig-interfaces", Organization: "OpenConfig working group", Version: "1.0.2"},
	{Name: "openconfig-lldp", Organization: "OpenConfig working group", Version: "1.0.2"},
	{Name: "sonic-port", Organization: "SONiC", Version: "1.0.0"},
	{Name: "sonic-db", Organization: "SONiC", Version: "0.1.0"},
}

func (s *sonic) Capabilities(ctx context.Context, _ *pb.CapabilityRequest) (*pb.CapabilityResponse, error) {
	s.s.asked.Capabilities.Add(1)
	faults, err := s.s.enter(ctx)
	if err != nil {
		return nil, err
	}
	answer := &pb.CapabilityResponse{SupportedModels: sonicModels, GNMIVersion: "0.7.0",
		SupportedEncodings: []pb.Encoding{pb.Encoding_JSON, pb.Encoding_JSON_IETF, pb.Encoding_PROTO}}
	if faults.Model != "" {
		answer.SupportedModels = []*pb.ModelData{{Name: "vendor-smash", Organization: "A vendor", Version: "9"}}
	}
	return answer, nil
}

func encodes(encoding pb.Encoding) bool {
	return encoding == pb.Encoding_JSON || encoding == pb.Encoding_JSON_IETF || encoding == pb.Encoding_PROTO
}

func (s *sonic) Get(ctx context.Context, request *pb.GetRequest) (*pb.GetResponse, error) {
	s.s.asked.Gets.Add(1)
	s.s.asked.Paths.Add(int64(len(request.GetPath())))
	if request.GetType() != pb.GetRequest_ALL {
		return nil, status.Errorf(codes.Unimplemented, "unsupported request type: %s", request.GetType())
	}
	if !encodes(request.GetEncoding()) {
		return nil, status.Errorf(codes.Unimplemented, "unsupported encoding: %s", request.GetEncoding())
	}
	// Paths are looked at before the password is.
	read, problem := s.readers(request.GetPrefix(), request.GetPath())
	faults, err := s.s.enter(ctx)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		return nil, problem
	}
	answer := &pb.GetResponse{}
	for _, path := range request.GetPath() {
		value, there, err := read[path].read()
		if err != nil {
			return nil, status.Error(codes.NotFound, err.Error())
		}
		if !there && value.GetJsonIetfVal() == nil {
			return nil, status.Error(codes.NotFound, "redis: nil")
		}
		answer.Notification = append(answer.Notification, &pb.Notification{
			Timestamp: time.Now().UnixNano(),
			Prefix:    request.GetPrefix(),
			Update:    []*pb.Update{{Path: path, Val: faults.spoil(request.GetPrefix().GetTarget(), read[path].path, value)}},
		})
	}
	// sonic-gnmi keeps them in a map.
	rand.Shuffle(len(answer.Notification), func(i, j int) {
		answer.Notification[i], answer.Notification[j] = answer.Notification[j], answer.Notification[i]
	})
	return answer, nil
}

// A reader answers one path, now.
type reader struct {
	path    []string
	sources []source // nil where it is not from the databases
	read    func() (*pb.TypedValue, bool, error)
}

// readers resolves the paths of a Get, where rows have to be there.
func (s *sonic) readers(prefix *pb.Path, paths []*pb.Path) (map[*pb.Path]reader, error) {
	found, err := s.resolved(prefix, paths)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		why, err := missing(s.s.store, prefix.GetTarget(), one.sources)
		if err != nil {
			why = err.Error()
		}
		if why != "" {
			return nil, status.Error(codes.NotFound, why)
		}
	}
	return found, nil
}

// resolved resolves paths, also to what may come.
func (s *sonic) resolved(prefix *pb.Path, paths []*pb.Path) (map[*pb.Path]reader, error) {
	target := prefix.GetTarget()
	found := map[*pb.Path]reader{}
	if target == "OTHERS" {
		for _, path := range paths {
			names := elementNames(prefix, path)
			if len(names) != 2 || names[0] != "proc" || names[1] != "uptime" {
				return nil, status.Errorf(codes.NotFound, "OTHERS %v is not served", names)
			}
			found[path] = reader{path: names, read: s.s.uptime}
		}
		return found, nil
	}
	if _, known := databases[target]; !known || s.s.faults().Model == "other" {
		return nil, status.Errorf(codes.NotFound, "Invalid target dbName %s", target)
	}
	var names portNames
	var err error
	if target == "COUNTERS_DB" {
		if names, err = s.s.portNames(); err != nil {
			return nil, status.Error(codes.NotFound, err.Error())
		}
	}
	for _, path := range paths {
		elements := elementNames(prefix, path)
		sources, err := resolve(s.s.store, target, names, elements)
		if err == nil && s.s.config.EmptyTableFails {
			err = refuseEmpty(s.s.store, target, elements)
		}
		if err != nil {
			return nil, status.Error(codes.NotFound, err.Error())
		}
		found[path] = reader{elements, sources, func() (*pb.TypedValue, bool, error) { return readAll(s.s.store, target, sources) }}
	}
	return found, nil
}

// uptime is sonic_data_client/non_db_client.go's answer for proc/uptime: the one place where numbers are numbers.
func (s *Switch) uptime() (*pb.TypedValue, bool, error) {
	since := time.Since(s.bootTime()).Seconds()
	text, err := json.Marshal(map[string]float64{"total": since, "idle": since / 2})
	if err != nil {
		return nil, false, fmt.Errorf("uptime: %w", err)
	}
	return raw(text), true, nil
}
