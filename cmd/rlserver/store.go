package main

import "rlserver/persistence"

// store is a persistence.Store that says in Redis' words why it refuses changes.
type store struct{ *persistence.Store }

// Refusal implements storage.Store.
func (s store) Refusal() string {
	switch err := s.Refuses(); {
	case err == nil:
	case s.Full() != nil:
		return "Errors writing to the AOF file, which is tried again: " + err.Error()
	default:
		return "Errors writing to the AOF file: " + err.Error()
	}
	return ""
}
