package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SavePoint asks for a snapshot when so many changes have been made and the last snapshot is so old.
type SavePoint struct {
	Seconds int64 // 1 or more
	Changes int64 // 0 or more
}

// SavePoints are what the parameter save says: a snapshot is due as soon as one of them is reached. None: never.
type SavePoints []SavePoint

const ErrSavePoints = valueError("Invalid save parameters")

// ParseSavePoints reads pairs of seconds and changes as Redis takes them: "3600 1 300 100", single spaces between them. "" is none.
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
		list = append(list, SavePoint{seconds, changes})
	}
	return list, nil
}

// String is what ParseSavePoints reads.
func (list SavePoints) String() string {
	var words []string
	for _, p := range list {
		words = append(words, fmt.Sprint(p.Seconds, " ", p.Changes))
	}
	return strings.Join(words, " ")
}
