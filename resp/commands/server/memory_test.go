package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHumanBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1.00K", 1536: "1.50K", 1 << 20: "1.00M", 5 << 30: "5.00G", 1 << 40: "1.00T",
		1 << 62: "4096.00P",
	} {
		assert.Equal(t, want, humanBytes(n))
	}
}
