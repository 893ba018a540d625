package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// The shortest interval of samples, and how often a field is looked at (db_client.go).
const (
	shortestSample = time.Second
	fieldPause     = 200 * time.Millisecond
)

// streaming is one Subscribe call under way.
type streaming struct {
	s      *Switch
	stream pb.GNMI_SubscribeServer
	prefix *pb.Path
	read   map[*pb.Path]reader
	stop   chan struct{} // closed when the call ends, whoever ends it
	once   sync.Once
	why    string // first reason to end
	sends  sync.Mutex
	sent   int
	synced sync.WaitGroup
	ended  sync.WaitGroup
}

func (c *streaming) end(why string) {
	c.once.Do(func() {
		c.why = why
		close(c.stop)
	})
}

// Subscribe ends with InvalidArgument whatever was the reason, as sonic-gnmi's does.
func (s *sonic) Subscribe(stream pb.GNMI_SubscribeServer) error {
	s.s.asked.Subscribes.Add(1)
	request, err := stream.Recv()
	if err != nil {
		return status.Error(codes.Aborted, "stream EOF received before init")
	}
	list := request.GetSubscribe()
	if list == nil {
		return status.Error(codes.InvalidArgument, "first message must be SubscriptionList")
	}
	if len(list.GetSubscription()) == 0 {
		return status.Error(codes.NotFound, "Invalid subscription path: No Subscription")
	}
	if list.GetPrefix().GetTarget() == "" {
		return status.Error(codes.Unimplemented, "Empty target data not supported")
	}
	var paths []*pb.Path
	for _, subscription := range list.GetSubscription() {
		paths = append(paths, subscription.GetPath())
	}
	read, problem := s.resolved(list.GetPrefix(), paths)
	if _, err := s.s.enter(stream.Context()); err != nil {
		return err
	}
	if problem != nil {
		return problem
	}
	call := &streaming{s: s.s, stream: stream, prefix: list.GetPrefix(), read: read, stop: make(chan struct{})}
	leave, err := s.s.admit(stream, call)
	if err != nil {
		return err
	}
	defer leave()
	polls := make(chan struct{}, 1)
	go call.receive(list.GetMode(), polls)
	call.ended.Add(1)
	switch list.GetMode() {
	case pb.SubscriptionList_STREAM:
		go call.run(list)
	case pb.SubscriptionList_POLL:
		polls <- struct{}{}
		go call.answer(paths, polls)
	default:
		once := make(chan struct{}, 1)
		once <- struct{}{}
		go call.answer(paths, once)
	}
	select {
	case <-call.stop:
	case <-stream.Context().Done():
		call.end("the client is gone")
	}
	call.ended.Wait()
	return status.Error(codes.InvalidArgument, call.why)
}

// admit lets a call in, if there is room. One connection has one: a second call on it ends the first.
func (s *Switch) admit(stream pb.GNMI_SubscribeServer, call *streaming) (func(), error) {
	from := ""
	if p, known := peer.FromContext(stream.Context()); known {
		from = p.Addr.String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) >= s.config.Threshold {
		return nil, status.Error(codes.Unavailable, "Server connections are at capacity.")
	}
	for other, address := range s.streams {
		if address == from {
			other.end("Disposed")
		}
	}
	s.streams[call] = from
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, call)
	}, nil
}

// receive waits for polls, and for the client's end. A client that will say no more ends ONCE and POLL, though it may
// not have all it asked for; a STREAM goes on.
func (c *streaming) receive(mode pb.SubscriptionList_Mode, polls chan struct{}) {
	for {
		request, err := c.stream.Recv()
		switch {
		case err == io.EOF && mode == pb.SubscriptionList_STREAM:
			return
		case err != nil:
			c.end("Disposed")
			return
		case mode == pb.SubscriptionList_POLL && request.GetPoll() == nil:
			c.end("Disposed")
			return
		case mode == pb.SubscriptionList_POLL:
			select {
			case polls <- struct{}{}:
			case <-c.stop:
				return
			}
		}
	}
}

func (c *streaming) send(response *pb.SubscribeResponse) bool {
	c.sends.Lock()
	defer c.sends.Unlock()
	faults, err := c.s.hold(c.stream.Context())
	if err != nil {
		c.end("the client is gone")
		return false
	}
	if faults.CloseAfter > 0 && c.sent >= faults.CloseAfter {
		c.end("Disposed")
		return false
	}
	select {
	case <-c.stop:
		return false
	default:
	}
	if err := c.stream.Send(response); err != nil {
		c.end(err.Error())
		return false
	}
	c.sent++
	return true
}

func (c *streaming) update(path *pb.Path, value *pb.TypedValue) bool {
	value = c.s.faults().spoil(c.prefix.GetTarget(), c.read[path].path, value)
	return c.send(&pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: &pb.Notification{
		Timestamp: time.Now().UnixNano(), Prefix: c.prefix, Update: []*pb.Update{{Path: path, Val: value}}}}})
}

func (c *streaming) sync() bool {
	return c.send(&pb.SubscribeResponse{Response: &pb.SubscribeResponse_SyncResponse{SyncResponse: true}})
}

// answer gives all values for each turn. It does not end the call after ONCE: that is the client's.
func (c *streaming) answer(paths []*pb.Path, turns chan struct{}) {
	defer c.ended.Done()
	for {
		select {
		case <-turns:
		case <-c.stop:
			return
		}
		for _, path := range paths {
			value, there, err := c.read[path].read()
			if err != nil {
				c.end(err.Error())
				return
			}
			if there {
				c.update(path, value)
			}
		}
		c.sync()
	}
}

// run is mode STREAM.
func (c *streaming) run(list *pb.SubscriptionList) {
	defer c.ended.Done()
	for _, subscription := range list.GetSubscription() {
		var interval time.Duration
		switch subscription.GetMode() {
		case pb.SubscriptionMode_ON_CHANGE:
		case pb.SubscriptionMode_SAMPLE:
			interval = time.Duration(subscription.GetSampleInterval())
			if interval == 0 {
				interval = shortestSample
			}
			if interval < shortestSample {
				c.end(fmt.Sprintf("invalid interval: %v. It cannot be less than %v", interval, shortestSample))
				return
			}
		default:
			c.end(fmt.Sprintf("unsupported subscription mode, %v", subscription.GetMode()))
			return
		}
		c.synced.Add(1)
		c.ended.Add(1)
		one := &subscribed{c, subscription.GetPath(), c.read[subscription.GetPath()], interval, list.GetUpdatesOnly()}
		go func() {
			defer c.ended.Done()
			if _, field := oneField(one.sources); field || one.sources == nil {
				one.followField()
			} else if len(one.sources) > 0 && one.sources[0].field != "" && allFields(one.sources) {
				one.followFields()
			} else {
				one.followRows()
			}
		}()
	}
	c.synced.Wait()
	c.sync()
}

func allFields(sources []source) bool {
	for _, from := range sources {
		if from.field == "" {
			return false
		}
	}
	return true
}

// subscribed is one path of a STREAM; an interval of 0 is ON_CHANGE.
type subscribed struct {
	*streaming
	path *pb.Path
	reader
	interval    time.Duration
	updatesOnly bool
}

func (o *subscribed) pause() time.Duration {
	if o.interval == 0 {
		return fieldPause
	}
	return o.interval
}

// followField looks at a field again and again; one that is missing is the empty string.
func (o *subscribed) followField() {
	var last *pb.TypedValue
	for first := true; ; first = false {
		value, there, err := o.reader.read()
		if err != nil || !there {
			value = stringValue("")
		}
		sent := true
		if first || o.interval > 0 || value.GetStringVal() != last.GetStringVal() {
			sent = o.update(o.path, value)
		}
		last = value
		if first {
			o.synced.Done()
		}
		if !sent || !o.wait(o.pause()) {
			return
		}
	}
}

// followFields does so with a field of many rows. What has not changed is left out, but of samples.
func (o *subscribed) followFields() {
	last := object{}
	for first := true; ; first = false {
		now, changed := object{}, object{}
		for _, from := range o.sources {
			if err := from.read(o.s.store, o.prefix.GetTarget(), now); err != nil {
				o.streaming.end(err.Error())
			}
		}
		for name, row := range now {
			if !(o.interval == 0 || o.updatesOnly) || !reflect.DeepEqual(row, last[name]) {
				changed[name] = row
			}
		}
		last = now
		sent := true
		if first || o.interval > 0 || len(changed) > 0 {
			sent = o.update(o.path, jsonValue(changed))
		}
		if first {
			o.synced.Done()
		}
		if !sent || !o.wait(o.pause()) {
			return
		}
	}
}

func (o *subscribed) wait(pause time.Duration) bool {
	select {
	case <-o.stop:
		return false
	case <-time.After(pause):
		return true
	}
}

// A changed is a row that was written or deleted: what is to be said of it.
type changed struct {
	name string // above the row, or empty
	row  Row
}

// followRows listens to the database. Of a deleted row or field a table says {"row":{}}, and one row's own path nothing,
// so that its last values go on being sampled.
func (o *subscribed) followRows() {
	database := o.prefix.GetTarget()
	changes := make(chan []changed, 64)
	if err := o.watch(database, changes); err != nil {
		o.streaming.end(err.Error())
	}
	all := object{}
	for _, from := range o.sources {
		if err := from.read(o.s.store, database, all); err != nil {
			o.streaming.end(err.Error())
		}
	}
	sent := o.update(o.path, jsonValue(all))
	o.synced.Done()
	if o.updatesOnly {
		all = object{}
	}
	var ticks <-chan time.Time
	if o.interval > 0 {
		ticker := time.NewTicker(o.interval)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for sent {
		select {
		case <-o.stop:
			return
		case news := <-changes:
			part := all
			if o.interval == 0 {
				part = object{}
			}
			for _, one := range news {
				if one.name == "" {
					addFields(part, one.row)
				} else {
					part[one.name] = one.row
				}
			}
			if o.interval == 0 {
				sent = o.update(o.path, jsonValue(part))
			}
		case <-ticks:
			sent = o.update(o.path, jsonValue(all))
			if o.updatesOnly {
				all = object{}
			}
		}
	}
}

// watch follows the sources until the call ends. Many rows of a table are watched as one.
func (o *subscribed) watch(database string, changes chan []changed) error {
	separator := databases[database].separator
	patterns, byRow := map[string]bool{}, map[string]source{}
	for _, from := range o.sources {
		switch {
		case from.key == "" && database == "COUNTERS_DB" && from.table != "COUNTERS" && from.table != "PORT_PHY_ATTR":
			patterns[from.table+"*"] = true
		case from.key == "" || len(o.sources) > 1:
			patterns[from.table+separator+"*"] = true
		default:
			patterns[from.row(separator)] = true
		}
		byRow[from.row(separator)] = from
	}
	for pattern := range patterns {
		watch, err := o.s.store.Watch(database, pattern)
		if err != nil {
			return err
		}
		o.ended.Add(1)
		go o.listen(database, watch, byRow, changes)
	}
	return nil
}

func (o *subscribed) listen(database string, watch *Watch, byRow map[string]source, changes chan []changed) {
	defer o.ended.Done()
	defer watch.Close()
	last := map[string]object{}
	for {
		select {
		case <-o.stop:
			return
		case event := <-watch.Events:
			from, is := byRow[event.Key]
			if !is && len(o.sources) == 1 {
				from = o.sources[0]
				is = from.key == ""
			}
			if !is {
				continue
			}
			news := o.news(database, from, event)
			if len(news) == 0 || event.What == "hset" && reflect.DeepEqual(news, last[event.Key]) {
				continue
			}
			last[event.Key] = news
			select {
			case changes <- listOf(news):
			case <-o.stop:
				return
			}
		}
	}
}

func listOf(news object) []changed {
	var all []changed
	own := Row{}
	for name, value := range news {
		switch of := value.(type) {
		case Row:
			all = append(all, changed{name, of})
		case string:
			own[name] = of
		}
	}
	if len(own) > 0 {
		all = append(all, changed{"", own})
	}
	return all
}

// news is what a change of a row adds to the answer.
func (o *subscribed) news(database string, from source, event Event) object {
	found := object{}
	separator := databases[database].separator
	name := strings.TrimPrefix(event.Key, from.table+separator)
	if event.What == "del" || event.What == "hdel" {
		if from.key == "" {
			found[name] = Row{}
		}
		return found
	}
	if from.key != "" {
		from.read(o.s.store, database, found)
		return found
	}
	row, err := o.s.store.Row(database, event.Key)
	if err == nil && len(row) > 0 {
		if event.Key == from.table {
			addFields(found, row)
		} else {
			found[name] = row
		}
	}
	return found
}
