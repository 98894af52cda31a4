package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
