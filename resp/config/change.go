package config

import (
	"rlserver/engine"
)

// Change is a change that CONFIG SET requests: a parameter, the name that the client used, and the
// new value. It is not checked yet.
type Change struct {
	*Parameter
	Called string
	Value  string
}

// Refuse returns the reply to a change that fails.
func (c *Change) Refuse(why error) error {
	return engine.Errorf("ERR CONFIG SET failed (possibly related to argument '%.128s') - %v", c.Called, why)
}
