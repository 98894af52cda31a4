package config

import "rlserver/engine/change"

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
