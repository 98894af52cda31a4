package commandtest_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command/commandtest"
)

// failures is a test that is expected to fail.
type failures struct {
	testing.TB
	list []string
}

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// rewound is a journal that gets effects whose bytes something has written to after they were
// applied.
type rewound struct{ *commandtest.Mirror }

func (r rewound) Append(at int64, effects []byte) engine.Position {
	return r.Mirror.Append(at, bytes.ReplaceAll(effects, []byte("11"), []byte("10")))
}

// The comparison finds a number in the log that is not the one in memory, in strings as in hashes.
func TestMirrorNoticesEffectsThatHaveChanged(t *testing.T) {
	for _, change := range []func(tx *engine.Tx, k engine.Key, value []byte){
		func(tx *engine.Tx, k engine.Key, value []byte) { tx.Set(k, value, engine.SetMode{}) },
		func(tx *engine.Tx, k engine.Key, value []byte) {
			_, err := tx.HSet(k, [][]byte{[]byte("f"), value})
			require.NoError(t, err)
		},
	} {
		for value, want := range map[string]int{"11": 1, "12": 0} {
			failed := &failures{TB: t}
			mirror := commandtest.NewMirror(failed, 1)
			e := engine.New(engine.Options{Journal: rewound{mirror}})
			tx, k := e.NewTx(), e.Key([]byte("k"))
			tx.Begin(commandtest.Start, 0, []engine.Key{k}, true)
			change(tx, k, []byte(value))
			tx.End()
			mirror.Compare(e, commandtest.Start)
			require.Len(t, failed.list, want, value)
			if want > 0 {
				assert.Contains(t, failed.list[0], `"11"`)
				assert.Contains(t, failed.list[0], `"10"`)
			}
		}
	}
}
