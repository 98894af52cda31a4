package tracking

import (
	"slices"
	"strings"
)

// prefixes are those of all clients of BCAST, in order. The prefixes of a key are found by one
// binary search, whatever their number and the length of the key: the last one in order that is not
// behind the key begins with all of them.
type prefixes struct{ list []*prefix }

// prefix is one, with those who track it.
type prefix struct {
	name    string
	parent  *prefix // the longest other prefix that this one begins with; nil: there is none
	clients map[*Client]struct{}
	keys    []string // that have changed, of the call of Tell that runs
}

func (s *prefixes) find(name string) (at int, has bool) {
	return slices.BinarySearchFunc(s.list, name, func(p *prefix, name string) int {
		return strings.Compare(p.name, name)
	})
}

// withNew returns how many prefixes there are when some are added, which differ from each other.
func (s *prefixes) withNew(added []string) int {
	n := len(s.list)
	for _, name := range added {
		if _, has := s.find(name); !has {
			n++
		}
	}
	return n
}

func (s *prefixes) add(name string, c *Client) {
	at, has := s.find(name)
	if !has {
		p := &prefix{name: name, clients: make(map[*Client]struct{}, 1), parent: s.longest(name)}
		s.list = slices.Insert(s.list, at, p)
		for _, q := range s.longer(at) {
			if q.parent == p.parent {
				q.parent = p
			}
		}
	}
	s.list[at].clients[c] = struct{}{}
}

func (s *prefixes) remove(name string, c *Client) {
	at, has := s.find(name)
	if !has {
		return
	}
	p := s.list[at]
	if delete(p.clients, c); len(p.clients) > 0 {
		return
	}
	for _, q := range s.longer(at) {
		if q.parent == p {
			q.parent = p.parent
		}
	}
	s.list = slices.Delete(s.list, at, at+1)
}

// longer returns the prefixes that begin with the one at an index.
func (s *prefixes) longer(at int) []*prefix {
	end := at + 1
	for end < len(s.list) && strings.HasPrefix(s.list[end].name, s.list[at].name) {
		end++
	}
	return s.list[at+1 : end]
}

// longest returns the longest prefix that a key begins with, and whose parents are all others; nil:
// there is none.
func (s *prefixes) longest(key string) *prefix {
	at, has := s.find(key)
	if has {
		return s.list[at]
	}
	if at == 0 {
		return nil
	}
	p, common := s.list[at-1], 0
	for common < min(len(p.name), len(key)) && p.name[common] == key[common] {
		common++
	}
	for p != nil && len(p.name) > common {
		p = p.parent
	}
	return p
}
