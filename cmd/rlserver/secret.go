package main

import (
	"fmt"
	"strings"

	"rlserver/smallfile"
)

const (
	maxSecretFile = 64 << 10 // bytes
	// minSecret is the smallest length of a secret, in bytes. A failed attempt with one is not
	// delayed, unlike one with a password.
	minSecret = 16
)

// readSecret reads the first line of the file that a flag names. Without a path it returns "".
func readSecret(flag, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := smallfile.Read(path, maxSecretFile)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", flag, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	secret := strings.TrimSpace(line)
	if len(secret) < minSecret {
		return "", fmt.Errorf("%s %s: its first line must have at least %d characters", flag, path, minSecret)
	}
	return secret, nil
}
