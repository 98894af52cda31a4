package clustertest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// atOnce is how many tests run at once. They wait most of their time, for elections and for other
// nodes, so that a processor serves several.
const atOnce = 4

// Main runs the tests of a package, for its TestMain. The flag -parallel has the last word.
func Main(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
