package main

import (
	"fmt"
	"strings"

	"rlserver/internal/acl"
	"rlserver/resp/command"
)

// makeUsers creates the users of the start: the default user, and those of the ACL file or of
// --user.
func (c *setup) makeUsers() error {
	users := acl.NewUsers(command.AccessCatalog(), &c.Access)
	users.SetDefaultPassword(c.Password())
	if path := c.Start.ACLFile; path != "" {
		if err := users.Load(path); err != nil {
			return fmt.Errorf("--aclfile: %w", err)
		}
	}
	defined := make(map[string]bool)
	for _, line := range c.Start.UserLines {
		words := strings.FieldsFunc(line, acl.IsSeparator)
		if len(words) == 0 {
			continue
		}
		if defined[words[0]] {
			return fmt.Errorf("--user: Duplicate user '%s'", words[0])
		}
		defined[words[0]] = true
		if err := users.Define(words[0], words[1:]); err != nil {
			return fmt.Errorf("--user %s: %s", words[0], acl.Explain(err))
		}
	}
	c.Users = users
	return nil
}
