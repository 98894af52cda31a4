package persistence

import (
	"sync"

	"rlserver/engine"
)

// Memory is a journal that keeps its records in memory, for as long as it lives: for tests, and for those who want to look at
// what a run did. The zero value is empty and ready. Any goroutine may use it.
type Memory struct {
	mu      sync.Mutex
	records []byte
}

// Append keeps a call's effects as a record.
func (m *Memory) Append(effects []engine.Effect) engine.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = AppendRecord(m.records, effects)
	return engine.Position(len(m.records))
}

// Wait returns at once: memory is as durable as it gets.
func (m *Memory) Wait(engine.Position) error { return nil }

// Replay applies all that was kept to an engine, in order.
func (m *Memory) Replay(e *engine.Engine) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var effects []engine.Effect
	for rest := m.records; len(rest) > 0; {
		batch, size, err := ReadRecord(effects[:0], rest)
		if err != nil {
			return err
		}
		e.Apply(batch)
		effects, rest = batch, rest[size:]
	}
	return nil
}
