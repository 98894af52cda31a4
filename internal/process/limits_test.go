package process

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAddressSpaceLimits(t *testing.T) {
	const mb, taken = 1 << 20, 700 << 20
	const tooLow = "the limit on address space is too low: ulimit -v is 921600, and at least 978944 is needed"
	for _, test := range []struct {
		limit, maxmemory int64
		warning, err     string
	}{
		{limit: 900 * mb, err: tooLow},
		{limit: 900 * mb, maxmemory: 10 * mb, err: tooLow},
		{limit: 4000 * mb, warning: "the limit on address space (ulimit -v) ends the process when it is reached: " +
			"set maxmemory, and ulimit -v unlimited"},
		{limit: 1500 * mb, maxmemory: 1000 * mb, warning: "the limit on address space is too low for maxmemory, " +
			"and ends the process when it is reached: ulimit -v is 1536000, and 2777088 is needed"},
		{limit: 4000 * mb, maxmemory: 1000 * mb},
	} {
		warning, err := checkAddressSpace(test.limit, taken, test.maxmemory)
		assert.Equal(t, test.warning, warning)
		if test.err == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, test.err)
		}
	}
}

func TestLimitThatIsTooLowToStart(t *testing.T) {
	assert.EqualError(t, checkStart(1<<30), "the limit on address space is too low: ulimit -v is 1048576, and at "+
		"least 2097152 is needed; limit memory with --maxmemory and MemoryMax of systemd instead")
	assert.Error(t, checkStart(minLimit-1))
	assert.NoError(t, checkStart(minLimit))
	assert.NoError(t, checkStart(math.MaxUint64)) // unlimited
}
