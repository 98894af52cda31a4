package process

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProcessors(t *testing.T) {
	for _, c := range []struct {
		used           int
		calls, batches int64
		want           int
	}{
		{7, 1000, 1000, 7},  // one by one
		{8, 1000, 1000, 7},  //
		{7, 16000, 1000, 8}, // pipelines of 16
		{8, 16000, 1000, 8}, //
		{7, 3000, 1000, 7},  // between the two it stays as it is
		{8, 3000, 1000, 8},  //
		{8, 10, 10, 8},      // idle
		{7, 0, 0, 7},        //
		{7, 1600, 99, 7},    // too little to tell
	} {
		assert.Equal(t, c.want, processors(8, c.used, c.calls, c.batches), "%+v", c)
	}
}
