package limits_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestTop(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	zipf := rand.NewZipf(r, 1.5, 1, 30)
	c := resptest.Start(t, config.Defaults{}).Dial()
	require.Equal(t, "*0", c.Do("RL.TOP"))
	exact := map[string]int{}
	for range 2000 {
		key := fmt.Sprint("key:", zipf.Uint64())
		if reply := c.Do("RL.FIXED " + key + " 3 1h"); strings.HasPrefix(reply, "*5 :0") {
			exact[key]++
		}
		c.Do("RL.FIXED " + key + " 3 1h COST 0")
	}
	reply := strings.Fields(c.Do("RL.TOP 4096"))
	require.Equal(t, fmt.Sprint("*", 2*len(exact)), reply[0])
	last := 1 << 30
	for i := 1; i < len(reply); i += 3 {
		n, err := strconv.Atoi(reply[i+2][1:])
		require.NoError(t, err)
		assert.Equal(t, exact[reply[i+1]], n, "%s: counts of few keys are exact", reply[i+1])
		assert.LessOrEqual(t, n, last)
		last = n
	}
	assert.Len(t, strings.Fields(c.Do("RL.TOP 2")), 7)
	c.Check([]resptest.Answer{
		{"INCREX counter UBOUND 1", "*2 :1 :1"},
		{"SELECT 2", "+OK"},
		{"INCREX counter UBOUND 1", "*2 :1 :1"},
		{"INCREX counter UBOUND 1", "*2 :1 :0"},
		{"INCREX counter BYFLOAT 1 UBOUND 1", "*2 $1 1 $1 0"},
		{"RL.TOP", "*2 $7 counter :2"},
		{"SELECT 0", "+OK"},
		{"RL.TOP 0", "-ERR n must be from 1 to 4096"},
		{"RL.TOP 4097", "-ERR n must be from 1 to 4096"},
		{"RL.TOP x", "-ERR n must be from 1 to 4096"},
		{"RL.TOP 1 2", "-ERR syntax error"},
		{"SELECT 1", "+OK"},
		{"RL.TOP", "*0"},
		{"CONFIG RESETSTAT", "+OK"},
		{"SELECT 0", "+OK"},
		{"RL.TOP", "*0"},
	})
}
