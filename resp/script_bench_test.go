package resp

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkScripts runs the scripts of limiters that make bench compares with Redis.
func BenchmarkScripts(b *testing.B) {
	for name, args := range map[string][]string{
		"slide": {"100", "60000"}, "token": {"100", "100", "60000", "1"}, "token-string": {"100", "100", "60000", "1"},
		"token-fraction": {"100", "1.6666", "1"},
	} {
		b.Run(name, func(b *testing.B) {
			source, err := os.ReadFile("../bench/" + name + ".lua")
			require.NoError(b, err)
			now := int64(testStart)
			s := newBenchSession(func() int64 { return now })
			s.execute(words("SCRIPT", "LOAD", string(source)))
			sha := string(s.Reply.B[5:45])
			s.flush()
			calls := make([][][]byte, 1000)
			for i := range calls {
				calls[i] = words(append([]string{"EVALSHA", sha, "1", fmt.Sprint("key:", i)}, args...)...)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.execute(calls[i%len(calls)])
				s.flush()
			}
		})
	}
}
