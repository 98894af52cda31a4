package main

import "rlserver/persistence"

// store adds a Refusal with the texts of Redis to a persistence.Store.
type store struct{ *persistence.Store }

// Refusal implements storage.Store.
func (s store) Refusal() string {
	switch err := s.Refuses(); {
	case err == nil:
	case s.Full() != nil:
		return "Errors writing to the AOF file, will retry: " + err.Error()
	default:
		return "Errors writing to the AOF file: " + err.Error()
	}
	return ""
}
