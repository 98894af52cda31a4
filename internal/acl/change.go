package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// Change is a change of the users that another node may apply. It contains digests instead of
// passwords. It is one of Set, Delete, Replace and Load.
type Change struct {
	Set     string   // name of a user that is created or changed
	Rules   []string // rules for Set
	Delete  []string // names of users
	Replace []string // all users, as Users.Describe returns them
	Load    string   `json:"-"` // the path of a file of all users, for this server alone
}

// HideSecrets replaces the passwords in Rules by their digests.
func (c *Change) HideSecrets() {
	c.Rules = slices.Clone(c.Rules)
	for i, rule := range c.Rules {
		switch {
		case strings.HasPrefix(rule, ">"):
			c.Rules[i] = "#" + digestOf(rule[1:])
		case strings.HasPrefix(rule, "<"):
			c.Rules[i] = "!" + digestOf(rule[1:])
		}
	}
}

func digestOf(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// Change applies a change to the users that lines describe, and returns the lines of the result and
// the number of deleted users. Lines are those of Users.Describe. Only the catalog and the settings
// of s are used.
func (s *Users) Change(lines []string, c Change) (after []string, deleted int, err error) {
	if c.Replace != nil {
		lines = c.Replace
	}
	made := NewUsers(s.catalog, s.settings)
	if _, err := made.Sync(lines); err != nil {
		return nil, 0, err
	}
	if c.Set != "" {
		err = made.Set(c.Set, c.Rules)
	}
	if err == nil && len(c.Delete) > 0 {
		deleted, err = made.Delete(c.Delete)
	}
	return made.Describe(), deleted, err
}

// Sync replaces the users by those of some lines of Describe, and reports whether anything has
// changed. Users that stay keep their accounts. After an error nothing has changed. No limit on
// users applies: whoever has changed them has checked it, by its own settings.
func (s *Users) Sync(lines []string) (changed bool, err error) {
	if slices.Equal(lines, s.Describe()) {
		return false, nil
	}
	users, problems := map[string]*User{}, []string(nil)
	for i, line := range lines {
		problems = append(problems, s.parseLine(users, "users", i+1, line, false)...)
	}
	if len(problems) > 0 {
		return false, errors.New(strings.Join(problems[:min(len(problems), maxProblems)], " "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if users[Default] == nil {
		users[Default] = s.initial
	}
	for name, a := range s.accounts {
		if users[name] == nil {
			s.drop(a)
			delete(s.accounts, name)
		}
	}
	for name, u := range users {
		if s.accounts[name] == nil {
			s.accounts[name] = &Account{name: name}
		}
		s.accounts[name].user.Store(u)
	}
	return true, nil
}

// Read returns the lines that Describe would return if a file was loaded.
func (s *Users) Read(path string) (lines []string, err error) {
	made := NewUsers(s.catalog, s.settings)
	s.mu.Lock()
	made.initial = s.initial
	s.mu.Unlock()
	if err := made.Load(path); err != nil {
		return nil, err
	}
	return made.Describe(), nil
}
