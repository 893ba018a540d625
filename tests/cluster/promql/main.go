// promql reads a JSON list of PromQL expressions and says of each what Prometheus' own parser says: why it is none, or
// which series it asks for.
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

type answer struct {
	Error     string     `json:"error"`
	Selectors []selector `json:"selectors"`
	// Labels that are grouped or joined by.
	Grouping []string `json:"grouping"`
}

func read(expression string) answer {
	said := answer{Selectors: []selector{}, Grouping: []string{}}
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		said.Error = err.Error()
		return said
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
			said.Selectors = append(said.Selectors, one)
		case *parser.AggregateExpr:
			said.Grouping = append(said.Grouping, part.Grouping...)
		case *parser.BinaryExpr:
			if part.VectorMatching != nil {
				said.Grouping = append(said.Grouping, part.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	return said
}

func main() {
	var expressions []string
	if err := json.NewDecoder(os.Stdin).Decode(&expressions); err != nil {
		fmt.Fprintln(os.Stderr, "promql: standard input is to be a JSON list of expressions:", err)
		os.Exit(2)
	}
	answers := make([]answer, 0, len(expressions))
	for _, expression := range expressions {
		answers = append(answers, read(expression))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, "promql:", err)
		os.Exit(1)
	}
}
