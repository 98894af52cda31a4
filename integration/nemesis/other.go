//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "nemesis: it needs the network namespaces of Linux")
	os.Exit(1)
}
