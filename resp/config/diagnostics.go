package config

import (
	"strconv"
	"strings"

	"rlserver/internal/grammar"
)

const (
	maxPercentiles     = 100
	errPercentiles     = valueError("Invalid latency-tracking-info-percentiles parameters")
	errPercentileRange = valueError("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
)

// LatencyPercentiles returns the percentiles that INFO latencystats shows, 0 to 100 each.
func (s *Settings) LatencyPercentiles() []float64 { return *s.latencyPercentiles.Load() }

// PercentileText formats a percentile as in 99.9.
func PercentileText(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) }

func percentiles() Value {
	return Value{
		Get: func(s *Settings) string {
			var words []string
			for _, p := range s.LatencyPercentiles() {
				words = append(words, PercentileText(p))
			}
			return strings.Join(words, " ")
		},
		Set: func(s *Settings, value string) (func(), error) {
			var list []float64
			for _, word := range strings.Fields(value) {
				p, ok := grammar.ParseFloat([]byte(word))
				switch {
				case !ok || len(list) == maxPercentiles:
					return nil, errPercentiles
				case p < 0 || p > 100:
					return nil, errPercentileRange
				}
				list = append(list, p)
			}
			return func() { s.latencyPercentiles.Store(&list) }, nil
		},
	}
}
