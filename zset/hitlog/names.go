package hitlog

import (
	"bytes"
	"strconv"
)

// AppendName appends the name of the n-th hit, from 1 on, of a call that has an id: id, id:2, id:3,
// … The first is id:1 if the id itself could be the name of another hit. So hits of two calls never
// have the same name, unless the calls have the same id.
func AppendName(dst, id []byte, n uint64) []byte {
	dst = append(dst, id...)
	if n == 1 && !isName(id) {
		return dst
	}
	return strconv.AppendUint(append(dst, ':'), n, 10)
}

// Named returns the id and the number that AppendName makes a name of; ok is false for other
// names.
func Named(name []byte) (id []byte, n uint64, ok bool) {
	if !isName(name) {
		return name, 1, true
	}
	i := bytes.LastIndexByte(name, ':')
	if i < 0 || len(name)-i-1 > maxDigits || len(name) == i+1 || name[i+1] == '0' {
		return nil, 0, false
	}
	for _, c := range name[i+1:] {
		if c-'0' > 9 {
			return nil, 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	id = name[:i]
	return id, n, n > 1 || isName(id)
}

// isName reports whether an id has the form of a hit's name: …:<n>, or <ms>-<seq>.
func isName(id []byte) bool {
	i := len(id)
	for i > 0 && id[i-1]-'0' <= 9 {
		i--
	}
	if i == 0 || i == len(id) {
		return false
	}
	if id[i-1] == ':' {
		return true
	}
	for _, c := range id[:i-1] {
		if c-'0' > 9 {
			return false
		}
	}
	return id[i-1] == '-' && i > 1
}
