package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rlserver/engine/change"
	"rlserver/internal/grammar"
	"rlserver/internal/storage"
)

// SavePoints is the value of the parameter save: a snapshot is due as soon as one of them is
// reached. If it is empty, no snapshot is due.
type SavePoints []storage.SavePoint

const ErrSavePoints = valueError("Invalid save parameters")

// ParseSavePoints parses pairs of seconds and changes as Redis does: "3600 1 300 100", with single
// spaces. "" returns nil.
func ParseSavePoints(text string) (list SavePoints, err error) {
	if text == "" {
		return nil, nil
	}
	words := strings.Split(text, " ")
	if len(words)%2 != 0 {
		return nil, ErrSavePoints
	}
	for pair := range slices.Chunk(words, 2) {
		seconds, err := strconv.ParseInt(pair[0], 10, 64)
		changes, err2 := strconv.ParseInt(pair[1], 10, 64)
		if err != nil || err2 != nil || seconds < 1 || changes < 0 {
			return nil, ErrSavePoints
		}
		list = append(list, storage.SavePoint{Seconds: seconds, Changes: changes})
	}
	return list, nil
}

// String returns the text that ParseSavePoints parses.
func (list SavePoints) String() string {
	var words []string
	for _, p := range list {
		words = append(words, fmt.Sprint(p.Seconds, " ", p.Changes))
	}
	return strings.Join(words, " ")
}

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

const errEventClass = valueError("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")

// eventClasses returns the value of notify-keyspace-events.
func eventClasses() Value {
	return Value{
		Get: func(s *Settings) string { return change.Class(s.NotifyEvents.Load()).String() },
		Set: func(s *Settings, value string) (func(), error) {
			classes, ok := change.Parse(value)
			if !ok {
				return nil, errEventClass
			}
			return func() { s.NotifyEvents.Store(uint32(classes)) }, nil
		},
	}
}
