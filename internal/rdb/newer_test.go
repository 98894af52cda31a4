package rdb

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Redis 8.2.3 and Valkey 9.1.2 wrote these payloads. Their versions are 12 and 80.
func TestDecodeReadsWhatNewerServersWrite(t *testing.T) {
	for _, r := range recordedIn(t, "testdata/payloads-newer.jsonl") {
		t.Run(r.Name, func(t *testing.T) {
			v, err := decode(r.bytes(t), math.MaxInt64)
			if r.Content[0] == "refused" {
				assert.Equal(t, ForeignError(r.Content[1]), err)
				return
			}
			require.NoError(t, err)
			want, got := r.Content, content(v)
			if v.Kind == SortedSet {
				want, got = scored(t, want), scored(t, got)
			}
			assert.Equal(t, want, got)
		})
	}
}
