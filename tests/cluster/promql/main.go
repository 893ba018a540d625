// promql reads a JSON list of PromQL expressions and says of each what Prometheus' own parser says: why it is none, or
// which series it asks for. With --alerts it reads a JSON list of stories, and says of each which alerts of a rule file
// Prometheus' own engine would have fired when.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

type matcher struct {
	Label string `json:"label"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

type selector struct {
	Metric   string    `json:"metric"`
	Matchers []matcher `json:"matchers"`
}

type said struct {
	Error     string     `json:"error"`
	Selectors []selector `json:"selectors"`
	// Labels that are grouped or joined by.
	Grouping []string `json:"grouping"`
}

func read(expression string) said {
	found := said{Selectors: []selector{}, Grouping: []string{}}
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch part := node.(type) {
		case *parser.VectorSelector:
			one := selector{Metric: part.Name, Matchers: []matcher{}}
			for _, match := range part.LabelMatchers {
				if match.Name != labels.MetricName {
					one.Matchers = append(one.Matchers, matcher{match.Name, match.Type.String(), match.Value})
				}
			}
			found.Selectors = append(found.Selectors, one)
		case *parser.AggregateExpr:
			found.Grouping = append(found.Grouping, part.Grouping...)
		case *parser.BinaryExpr:
			if part.VectorMatching != nil {
				found.Grouping = append(found.Grouping, part.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	return found
}

func readAll(expressions []string) []said {
	all := make([]said, 0, len(expressions))
	for _, expression := range expressions {
		all = append(all, read(expression))
	}
	return all
}

func answer[Question, Answer any](what string, say func([]Question) []Answer) {
	var questions []Question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		fmt.Fprintf(os.Stderr, "promql: standard input is to be a JSON list of %s: %v\n", what, err)
		os.Exit(2)
	}
	if err := json.NewEncoder(os.Stdout).Encode(say(questions)); err != nil {
		fmt.Fprintln(os.Stderr, "promql:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) == 1 {
		answer("expressions", readAll)
	} else if len(os.Args) == 2 && os.Args[1] == "--alerts" {
		answer("stories", tellAll)
	} else {
		fmt.Fprintln(os.Stderr, "promql: only --alerts is known")
		os.Exit(2)
	}
}
