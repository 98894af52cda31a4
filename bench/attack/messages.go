package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// publishToSleeper publishes messages of 10 KB to 50 subscribers that read, and to one that does
// not.
func publishToSleeper(ctx context.Context, t *target) (string, error) {
	for i := range 51 {
		c, err := t.connect()
		if err != nil {
			return "", err
		}
		until(ctx, c)
		if _, err := c.Write(command("SUBSCRIBE", "news")); err != nil {
			return "", err
		}
		if i > 0 {
			go io.Copy(io.Discard, c)
		}
	}
	c, err := t.connect()
	if err != nil {
		return "", err
	}
	until(ctx, c)
	go io.Copy(io.Discard, c)
	call, published := command("PUBLISH", "news", strings.Repeat("x", 10<<10)), 0
	for ctx.Err() == nil {
		if _, err := c.Write(call); err != nil {
			break
		}
		published++
	}
	return fmt.Sprintf("published %d messages", published), nil
}
