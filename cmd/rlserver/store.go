package main

import (
	"time"

	"rlserver/cluster/saving"
	"rlserver/internal/storage"
	"rlserver/persistence"
)

// store returns the store of a node of a cluster: the logs and snapshots of its groups.
func (c *clusterParts) store() *saving.Store {
	p := c.p
	return saving.New(saving.Options{
		Groups: func() (list []saving.Group) {
			if c.Node == nil {
				return nil
			}
			for _, g := range c.Node.Replicas() {
				list = append(list, g)
			}
			return list
		},
		Changes: p.engine.Memory().Changes, Now: p.clock.Now, Log: p.log, Settings: p.settings.Store(),
		SetSync: func(mode storage.SyncMode) error { return c.Node.SetSync(mode == storage.SyncAlways) },
		Took:    func(took time.Duration) { p.server.Stats.Snapshot.Observe(took) },
	})
}

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
