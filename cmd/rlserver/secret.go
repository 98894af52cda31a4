package main

import (
	"errors"
	"fmt"
	"strings"

	"rlserver/internal/smallfile"
)

const (
	maxSecretFile = 64 << 10 // bytes
	// minSecret is the smallest length of a secret, in bytes. A failed attempt with one is not
	// delayed, unlike one with a password.
	minSecret = 16
	// minNodeSecret is that of the secret of the nodes: who gets a node to dial him can guess at it
	// offline.
	minNodeSecret = 32
)

// readNodeSecret reads the secret of the nodes.
func readNodeSecret(path string) (string, error) {
	const flag = "--cluster-secret-file"
	secret, err := readSecret(flag, path)
	if errors.Is(err, errShortSecret) || err == nil && path != "" && len(secret) < minNodeSecret {
		return "", fmt.Errorf("%s %s: its first line must have at least %d characters. This makes one, for all nodes: "+
			"openssl rand -hex 32 > %[2]s", flag, path, minNodeSecret)
	}
	return secret, err
}

var errShortSecret = fmt.Errorf("its first line must have at least %d characters", minSecret)

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
		return "", fmt.Errorf("%s %s: %w", flag, path, errShortSecret)
	}
	return secret, nil
}
