package main

import (
	"context"
	"sync"
	"time"

	"github.com/openconfig/gnmi/cache"
	"github.com/openconfig/gnmi/ctree"
	pathpkg "github.com/openconfig/gnmi/path"
	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/subscribe"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// openConfig answers by OpenConfig's models. Subscribe is that of openconfig/gnmi over its own cache, into which the
// leaves are put as they change; only the samples of mode SAMPLE, which it does not know, are added. Get, which it has
// not, is below.
type openConfig struct {
	pb.UnimplementedGNMIServer
	s      *Switch
	cached *cache.Cache
	server *subscribe.Server

	mu      sync.Mutex
	version uint64
	known   map[string][]*pb.PathElem // what is in the cache, by its path as text
	leaves  []modelLeaf
	rounds  int
}

var openConfigModels = []*pb.ModelData{
	{Name: "openconfig-interfaces", Organization: "OpenConfig working group", Version: "3.8.0"},
	{Name: "openconfig-if-ethernet", Organization: "OpenConfig working group", Version: "2.14.0"},
	{Name: "openconfig-lldp", Organization: "OpenConfig working group", Version: "0.2.1"},
	{Name: "openconfig-qos", Organization: "OpenConfig working group", Version: "0.11.2"},
}

func newOpenConfig(s *Switch) (*openConfig, error) {
	o := &openConfig{s: s, known: map[string][]*pb.PathElem{}}
	o.cached = cache.New([]string{s.config.Name})
	server, err := subscribe.NewServer(o.cached)
	if err != nil {
		return nil, err
	}
	o.server = server
	o.cached.SetClient(server.Update)
	return o, o.refresh()
}

// refresh brings the cache to what the tables say.
func (o *openConfig) refresh() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	version, told := o.s.store.Version()
	if told && version == o.version && o.rounds > 0 {
		return nil
	}
	now, err := modelLeaves(o.s.store)
	if err != nil {
		return err
	}
	o.version, o.leaves = version, now
	o.rounds++
	target := o.cached.GetTarget(o.s.config.Name)
	at := time.Now().UnixNano()
	gone := o.known
	o.known = map[string][]*pb.PathElem{}
	prefix := &pb.Path{Target: o.s.config.Name}
	for _, leaf := range now {
		text := (&pb.Path{Elem: leaf.path}).String()
		o.known[text] = leaf.path
		delete(gone, text)
		// An equal value is no news: the cache passes on what changed.
		target.GnmiUpdate(&pb.Notification{Timestamp: at, Prefix: prefix,
			Update: []*pb.Update{{Path: &pb.Path{Elem: leaf.path}, Val: leaf.value}}})
	}
	for _, path := range gone {
		target.GnmiUpdate(&pb.Notification{Timestamp: at, Prefix: prefix, Delete: []*pb.Path{{Elem: path}}})
	}
	return nil
}

func (o *openConfig) Capabilities(ctx context.Context, _ *pb.CapabilityRequest) (*pb.CapabilityResponse, error) {
	o.s.asked.Capabilities.Add(1)
	if _, err := o.s.enter(ctx); err != nil {
		return nil, err
	}
	return &pb.CapabilityResponse{SupportedModels: openConfigModels, GNMIVersion: "0.10.0",
		SupportedEncodings: []pb.Encoding{pb.Encoding_JSON_IETF, pb.Encoding_PROTO}}, nil
}

// Keys of the lists that these models have. A path that leaves one out means all of it.
var listKeys = map[string]string{"interfaces/interface": "name", "lldp/interfaces/interface": "name",
	"lldp/interfaces/interface/neighbors/neighbor": "id", "qos/interfaces/interface": "interface-id",
	"qos/interfaces/interface/output/queues/queue": "name"}

func withKeys(elements []*pb.PathElem) []*pb.PathElem {
	var full []*pb.PathElem
	place := ""
	for _, element := range elements {
		if place != "" {
			place += "/"
		}
		place += element.GetName()
		key := listKeys[place]
		if key != "" && element.GetKey()[key] == "" {
			element = &pb.PathElem{Name: element.GetName(), Key: map[string]string{key: "*"}}
		}
		full = append(full, element)
	}
	return full
}

// The cache's stream asks by the name of its target, and any name does here: it is put back in what is sent.
type openConfigStream struct {
	pb.GNMI_SubscribeServer
	o     *openConfig
	first *pb.SubscribeRequest
	asked *pb.Path
	mu    sync.Mutex
	sent  int
}

func (c *openConfigStream) Recv() (*pb.SubscribeRequest, error) {
	if first := c.first; first != nil {
		c.first = nil
		return first, nil
	}
	return c.GNMI_SubscribeServer.Recv()
}

func (c *openConfigStream) Send(response *pb.SubscribeResponse) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	faults, err := c.o.s.hold(c.Context())
	if err != nil {
		return err
	}
	if faults.CloseAfter > 0 && c.sent >= faults.CloseAfter {
		return status.Error(codes.Unavailable, "the stream was closed")
	}
	if notification := response.GetUpdate(); notification != nil {
		if aboutItself(notification) {
			return nil
		}
		// The cache keeps what it sends.
		notification = proto.Clone(notification).(*pb.Notification)
		notification.Prefix = &pb.Path{Target: c.asked.GetTarget(), Origin: c.asked.GetOrigin()}
		for _, update := range notification.GetUpdate() {
			update.Val = faults.spoilLeaf(update.GetPath().GetElem(), update.GetVal())
		}
		response = &pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: notification}}
	}
	c.sent++
	return c.GNMI_SubscribeServer.Send(response)
}

// The cache keeps leaves about itself under "meta".
func aboutItself(notification *pb.Notification) bool {
	for _, update := range notification.GetUpdate() {
		if elements := update.GetPath().GetElem(); len(elements) > 0 && elements[0].GetName() == "meta" {
			return true
		}
	}
	return false
}

// spoilLeaf is spoil for a stream of leaves.
func (f Faults) spoilLeaf(path []*pb.PathElem, value *pb.TypedValue) *pb.TypedValue {
	last := path[len(path)-1].GetName()
	switch {
	case f.Hostname != "" && path[0].GetName() == "lldp" && len(path) == 3 && last == "system-name":
		return stringValue(f.Hostname)
	case f.Garbage == "numbers" || f.Garbage == "type":
		return stringValue("-1e400 banana")
	case f.Garbage != "":
		return raw([]byte("<html><body>502 Bad Gateway</body></html>"))
	}
	return value
}

func (o *openConfig) Subscribe(stream pb.GNMI_SubscribeServer) error {
	o.s.asked.Subscribes.Add(1)
	request, err := stream.Recv()
	if err != nil {
		return err
	}
	if _, err := o.s.enter(stream.Context()); err != nil {
		return err
	}
	list := request.GetSubscribe()
	if list == nil {
		return status.Error(codes.InvalidArgument, "the first message is to be a subscription")
	}
	if err := o.refresh(); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	own := proto.Clone(list).(*pb.SubscriptionList)
	own.Prefix = &pb.Path{Target: o.s.config.Name}
	samples := map[time.Duration][]*pb.Path{}
	for _, subscription := range own.GetSubscription() {
		path := &pb.Path{Elem: withKeys(append(list.GetPrefix().GetElem(), subscription.GetPath().GetElem()...))}
		subscription.Path = path
		if list.GetMode() == pb.SubscriptionList_STREAM && subscription.GetMode() == pb.SubscriptionMode_SAMPLE {
			interval := max(time.Duration(subscription.GetSampleInterval()), shortestSample)
			samples[interval] = append(samples[interval], path)
		}
	}
	named := list.GetPrefix()
	if named == nil {
		named = &pb.Path{}
	}
	call := &openConfigStream{GNMI_SubscribeServer: stream, o: o, asked: named,
		first: &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: own}}}
	closing := &streaming{s: o.s, stream: stream, stop: make(chan struct{})}
	leave, err := o.s.admit(stream, closing)
	if err != nil {
		return err
	}
	defer leave()
	go o.follow(stream.Context())
	for interval, paths := range samples {
		go o.sample(call, interval, paths)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.server.Subscribe(call) }()
	select {
	case err := <-ended:
		return err
	case <-closing.stop:
		return status.Error(codes.Unavailable, "the stream was closed")
	}
}

// follow keeps the cache fresh while somebody listens.
func (o *openConfig) follow(listening context.Context) {
	ticker := time.NewTicker(fieldPause)
	defer ticker.Stop()
	for {
		select {
		case <-listening.Done():
			return
		case <-ticker.C:
			o.refresh()
		}
	}
}

func (o *openConfig) sample(call *openConfigStream, interval time.Duration, paths []*pb.Path) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-call.Context().Done():
			return
		case <-ticker.C:
		}
		for _, path := range paths {
			o.cached.Query(o.s.config.Name, pathpkg.ToStrings(path, false), func(_ []string, leaf *ctree.Leaf, _ any) error {
				// The time of a sample is now, not that of the last change.
				notification, is := leaf.Value().(*pb.Notification)
				if !is {
					return nil
				}
				fresh := proto.Clone(notification).(*pb.Notification)
				fresh.Timestamp = time.Now().UnixNano()
				return call.Send(&pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: fresh}})
			})
		}
	}
}

// Get answers each path with one update for each node that it means.
func (o *openConfig) Get(ctx context.Context, request *pb.GetRequest) (*pb.GetResponse, error) {
	o.s.asked.Gets.Add(1)
	o.s.asked.Paths.Add(int64(len(request.GetPath())))
	faults, err := o.s.enter(ctx)
	if err != nil {
		return nil, err
	}
	if encoding := request.GetEncoding(); encoding != pb.Encoding_JSON_IETF && encoding != pb.Encoding_PROTO {
		return nil, status.Errorf(codes.Unimplemented, "unsupported encoding: %s", encoding)
	}
	if err := o.refresh(); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	o.mu.Lock()
	all := o.leaves
	o.mu.Unlock()
	answer := &pb.GetResponse{}
	for _, path := range request.GetPath() {
		asked := withKeys(append(request.GetPrefix().GetElem(), path.GetElem()...))
		notification := &pb.Notification{Timestamp: time.Now().UnixNano(), Prefix: &pb.Path{Target: request.GetPrefix().GetTarget()}}
		for _, node := range nodesOf(all, asked) {
			value := jsonValue(node.json)
			if request.GetEncoding() == pb.Encoding_PROTO && node.value != nil {
				value = node.value
			}
			if faults.Hostname != "" || faults.Garbage != "" {
				value = faults.spoil("", []string{"-"}, value)
			}
			notification.Update = append(notification.Update, &pb.Update{Path: &pb.Path{Elem: node.path}, Val: value})
		}
		if len(notification.Update) == 0 {
			return nil, status.Errorf(codes.NotFound, "no data at %s", path)
		}
		answer.Notification = append(answer.Notification, notification)
	}
	return answer, nil
}

// A node is what a path without wildcards means: a leaf, or an object.
type node struct {
	path  []*pb.PathElem
	value *pb.TypedValue // of a leaf
	json  any
}

func nodesOf(all []modelLeaf, asked []*pb.PathElem) []*node {
	var nodes []*node
	byPath := map[string]*node{}
	for _, leaf := range all {
		if !under(leaf.path, asked) {
			continue
		}
		at := leaf.path[:len(asked)]
		text := (&pb.Path{Elem: at}).String()
		found := byPath[text]
		if found == nil {
			found = &node{path: at, json: object{}}
			byPath[text] = found
			nodes = append(nodes, found)
		}
		if len(leaf.path) == len(asked) {
			found.value = leaf.value
			found.json = jsonOf(leaf.path[len(leaf.path)-1].GetName(), leaf.value)
			continue
		}
		put(found.json.(object), leaf, len(asked), "")
	}
	return nodes
}

func under(path, asked []*pb.PathElem) bool {
	if len(path) < len(asked) {
		return false
	}
	for depth, element := range asked {
		if element.GetName() != "*" && element.GetName() != path[depth].GetName() {
			return false
		}
		for key, value := range element.GetKey() {
			if value != "*" && value != path[depth].GetKey()[key] {
				return false
			}
		}
	}
	return true
}

// put writes a leaf into an object as RFC 7951 has it: a name bears its module where that is another than above it.
func put(into object, leaf modelLeaf, depth int, above string) {
	element := leaf.path[depth]
	module := moduleOf(leaf.path, depth)
	name := element.GetName()
	if module != above {
		name = module + ":" + name
	}
	if depth == len(leaf.path)-1 {
		into[name] = jsonOf(element.GetName(), leaf.value)
		return
	}
	var next object
	if len(element.GetKey()) == 0 {
		next, _ = into[name].(object)
		if next == nil {
			next = object{}
			into[name] = next
		}
	} else {
		list, _ := into[name].([]object)
		for _, entry := range list {
			same := true
			for key, value := range element.GetKey() {
				same = same && entry[key] == value
			}
			if same {
				next = entry
			}
		}
		if next == nil {
			next = object{}
			for key, value := range element.GetKey() {
				next[key] = value
			}
			into[name] = append(list, next)
		}
	}
	put(next, leaf, depth+1, module)
}
