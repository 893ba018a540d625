package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// story is what was scraped, and how long Prometheus looks at it.
type story struct {
	// Rules is the path of a rule file.
	Rules string `json:"rules"`
	// Load is Prometheus' own notation of test series: "load 1m\n  metric{a=\"b\"} 0x10 1x5".
	Load string `json:"load"`
	// Seconds from the first scrape until the last evaluation.
	Seconds int64 `json:"seconds"`
	// Step between two evaluations, in seconds.
	Step int64 `json:"step"`
}

// fired is one alert with one set of labels. Times are seconds since the first scrape; -1 where it never came to that.
type fired struct {
	Alert       string            `json:"alert"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"` // as of the first time that it fired; of the pending one before
	Pending     int64             `json:"pending"`
	Firing      int64             `json:"firing"`
	Resolved    int64             `json:"resolved"`
}

type told struct {
	Error  string   `json:"error"`
	Alerts []*fired `json:"alerts"`
}

// watch keeps what was seen of each alert over the evaluations.
type watch struct {
	seen  map[string]*fired
	order []*fired
}

func (w *watch) look(rule *rules.AlertingRule, at int64) {
	active := map[string]bool{}
	for _, alert := range rule.ActiveAlerts() {
		key := rule.Name() + alert.Labels.String()
		active[key] = true
		one := w.seen[key]
		if one == nil {
			one = &fired{rule.Name(), without(alert.Labels, labels.AlertName), alert.Annotations.Map(), at, -1, -1}
			w.seen[key] = one
			w.order = append(w.order, one)
		}
		if alert.State == rules.StateFiring && one.Firing < 0 {
			one.Firing, one.Annotations = at, alert.Annotations.Map()
		}
	}
	for key, one := range w.seen {
		if one.Alert == rule.Name() && !active[key] && one.Resolved < 0 {
			one.Resolved = at
		}
	}
}

func without(all labels.Labels, name string) map[string]string {
	left := all.Map()
	delete(left, name)
	return left
}

// tell evaluates all rules of the file on what was scraped, step by step, as Prometheus does.
func tell(one story) (told, error) {
	if one.Step <= 0 || one.Seconds < one.Step {
		return told{}, fmt.Errorf("a step of %d s in %d s is none", one.Step, one.Seconds)
	}
	usual := promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true}
	scraped, err := promqltest.NewLazyLoader(one.Load, usual)
	if err != nil {
		return told{}, err
	}
	defer scraped.Close()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(scraped.QueryEngine(), scraped.Storage()),
		Appendable: scraped.Storage(),
		Context:    context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     promslog.NewNopLogger(),
	})
	step := time.Duration(one.Step) * time.Second
	loaded, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, one.Rules)
	if len(errs) > 0 {
		return told{}, errs[0]
	}
	seen := watch{seen: map[string]*fired{}, order: []*fired{}}
	for at := int64(0); at <= one.Seconds; at += one.Step {
		now := time.Unix(at, 0).UTC()
		var failed error
		scraped.WithSamplesTill(now, func(problem error) { failed = problem })
		if failed != nil {
			return told{}, failed
		}
		for _, name := range slices.Sorted(maps.Keys(loaded)) {
			loaded[name].Eval(scraped.Context(), now)
			for _, rule := range loaded[name].Rules() {
				if rule.LastError() != nil {
					return told{}, fmt.Errorf("%s at %s: %w", rule.Name(), model.Duration(now.Sub(time.Unix(0, 0))), rule.LastError())
				}
				if alerting, is := rule.(*rules.AlertingRule); is {
					seen.look(alerting, at)
				}
			}
		}
	}
	return told{Alerts: seen.order}, nil
}

func tellAll(stories []story) []told {
	answers := make([]told, 0, len(stories))
	for _, one := range stories {
		answer, err := tell(one)
		if err != nil {
			answer = told{Error: err.Error()}
		}
		if answer.Alerts == nil {
			answer.Alerts = []*fired{}
		}
		answers = append(answers, answer)
	}
	return answers
}
