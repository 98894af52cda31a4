package str_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/commands/str"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// The bits of a long string are read without its lock. The reply keeps its place, in a pipeline and
// in a transaction.
func TestBitsOfALongStringKeepReplyOrder(t *testing.T) {
	client := resptest.Start(t, config.Defaults{}).Dial()
	ask := func(line string) any {
		fmt.Fprint(client, line+"\r\n")
		return client.ReadValue()
	}
	const far = str.LongBits*8 + 3
	require.Equal(t, int64(0), ask(fmt.Sprint("SETBIT k ", far, " 1")))
	fmt.Fprintf(client, "PING a\r\nBITCOUNT k\r\nBITPOS k 1\r\nBITPOS k 0 %d -1 BIT\r\nPING b\r\n", far)
	for _, want := range []any{"a", int64(1), int64(far), int64(far + 1), "b"} {
		assert.Equal(t, want, client.ReadValue())
	}
	for _, line := range []string{"MULTI", "ECHO first", "BITCOUNT k", "SETBIT k 5 1", "BITCOUNT k", "BITPOS k 1",
		"DEL k", "ECHO last"} {
		ask(line)
	}
	assert.Equal(t, []any{"first", int64(1), int64(0), int64(2), int64(5), int64(1), "last"}, ask("EXEC"))
}

// A short command must not make the server exceed maxmemory.
func TestGrowingAStringIsLimitedByMaxmemory(t *testing.T) {
	client := resptest.Start(t, config.Defaults{"maxmemory": "67108864", "maxmemory-policy": "allkeys-random"}).Dial()
	ask := func(line string) any {
		fmt.Fprint(client, line+"\r\n")
		return client.ReadValue()
	}
	const oom = "OOM command not allowed when used memory > 'maxmemory'."
	for _, line := range []string{
		"SETBIT k 4294967295 1", "SETRANGE k 536870000 x", "BITFIELD k SET u8 4294967295 1", "BITFIELD k SET u8 " +
			"4294967288 1",
	} {
		assert.Equal(t, oom, ask(line), line)
	}
	assert.Equal(t, int64(0), ask("EXISTS k"))
	assert.Equal(t, []any{int64(0)}, ask("BITFIELD k GET u8 4294967295"))

	assert.Equal(t, int64(0), ask(fmt.Sprint("SETBIT k1 ", 8*(30<<20), " 1")))
	assert.Equal(t, int64(0), ask(fmt.Sprint("SETBIT k2 ", 8*(40<<20), " 1")), "the other key is evicted")
	assert.Equal(t, int64(0), ask("EXISTS k1"))
	ask("CONFIG SET maxmemory-policy noeviction")
	assert.Equal(t, oom, ask("BITOP NOT k3 k2"))
	assert.Equal(t, int64(40<<20+1), ask("STRLEN k2"))
}
