package persistence

import (
	"sync"

	"rlserver/engine"
	"rlserver/engine/effect"
)

// Memory is a journal that keeps its records in memory. The zero value is empty and
// ready to use. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	records []byte
}

// Append implements engine.Journal: it keeps the effects of a call as a record.
func (m *Memory) Append(now int64, effects []byte) engine.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = AppendCall(m.records, now, effects)
	return engine.Position(len(m.records))
}

// Wait implements engine.Journal. It returns at once.
func (m *Memory) Wait(engine.Position) error { return nil }

// Replay applies all records to an engine, in order.
func (m *Memory) Replay(e *engine.Engine) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var effects []effect.Effect
	for rest := m.records; len(rest) > 0; {
		rec, size, err := readRecord(effects[:0], rest)
		if err == nil {
			err = e.Apply(rec.at, rec.effects)
		}
		if err != nil {
			return err
		}
		effects, rest = rec.effects, rest[size:]
	}
	return nil
}
