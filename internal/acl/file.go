package acl

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"rlserver/internal/smallfile"
)

const (
	maxFile     = 64 << 20 // bytes
	maxProblems = 50       // errors reported for one file
)

// Load replaces all users by those of a file, which has a line `user name rules…` for each. After
// an error nothing has changed; the error lists the wrong lines. If the file does not define the
// default user, this user may run every call, with the password of SetDefaultPassword. As in Redis,
// all other accounts are new: the caller must close the connections of the previous ones.
func (s *Users) Load(path string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	text, err := smallfile.Read(path, maxFile)
	if err != nil {
		return fmt.Errorf("Error loading ACLs, opening file '%s': %w", path, err)
	}
	lines := strings.Split(string(bytes.TrimPrefix(text, []byte("\ufeff"))), "\n")
	users, problems := map[string]*User{}, []string(nil)
	for i, line := range lines {
		problems = append(problems, s.parseLine(users, path, i+1, strings.Trim(line, " \t\r\n"), true)...)
	}
	defined := len(users)
	if users[Default] == nil {
		defined++
	}
	if err := s.checkCount(defined); err != nil {
		problems = append(problems, fmt.Sprintf("%s: %v.", path, err))
	}
	if len(problems) > maxProblems {
		problems = append(problems[:maxProblems], fmt.Sprintf("And %d more errors.", len(problems)-maxProblems))
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, " ") +
			" WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
	}
	s.replace(users)
	return nil
}

// parseLine adds the user that a line defines, and returns the errors of the line. limited: a user
// beyond the limits is one.
func (s *Users) parseLine(
	users map[string]*User, path string, number int, line string, limited bool,
) (problems []string) {
	words := strings.Split(line, " ")
	switch {
	case line == "":
		return nil
	case words[0] != "user" || len(words) < 2:
		return []string{fmt.Sprintf("%s:%d should start with user keyword followed by the username.", path, number)}
	case hasSpaces(words[1]) || words[1] == "":
		return []string{fmt.Sprintf("'%s:%d: username '%s' contains invalid characters.", path, number, words[1])}
	case users[words[1]] != nil:
		return []string{fmt.Sprintf("WARNING: Duplicate user '%s' found on line %d.", words[1], number)}
	}
	if err := s.checkText(words[2:]); limited && err != nil {
		return []string{fmt.Sprintf("%s:%d: %v.", path, number, err)}
	}
	merged, err := mergeSelectors(words[2:])
	if err != nil {
		return []string{fmt.Sprintf("%s:%d: Unmatched parenthesis in selector definition.", path, number)}
	}
	u := NewUser(s.catalog, s.allChannels())
	for _, rule := range merged {
		made, err := u.Apply([]string{strings.Trim(rule, "\t\r\n")}, s.allChannels())
		if err == nil {
			u = made
			continue
		}
		problems = append(problems, fmt.Sprintf("%s:%d: %s.", path, number, Explain(err)))
		if !errors.Is(err, ErrUnknownCommand) {
			return problems // it may cause the following ones
		}
	}
	if err := s.checkSize(words[1], u); limited && err != nil {
		return append(problems, fmt.Sprintf("%s:%d: %v.", path, number, err))
	}
	users[words[1]] = u
	return problems
}

// replace replaces all users.
func (s *Users) replace(users map[string]*User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if users[Default] == nil {
		users[Default] = s.initial
	}
	for name, a := range s.accounts {
		if a != s.defaultAccount {
			s.drop(a)
			delete(s.accounts, name)
		}
	}
	for name, u := range users {
		a := s.accounts[name]
		if a == nil {
			a = &Account{name: name}
			s.accounts[name] = a
		}
		a.user.Store(u)
	}
}

// Describe returns all users as the lines of an ACL file, sorted by name.
func (s *Users) Describe() (lines []string) {
	for _, a := range s.All() {
		lines = append(lines, "user "+a.name+" "+a.User().Describe())
	}
	return lines
}

// Defined returns the names and rules of the users for a configuration file. The default user is
// left out if its rules are the initial ones.
func (s *Users) Defined() (lines []string) {
	s.mu.Lock()
	initial := s.initial
	s.mu.Unlock()
	for _, a := range s.All() {
		if u := a.User(); a != s.defaultAccount || u.Describe() != initial.Describe() {
			lines = append(lines, a.name+" "+u.Describe())
		}
	}
	return lines
}

// Save replaces a file by one with all users, see smallfile.Write.
func (s *Users) Save(path string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return smallfile.Write(path, strings.Join(s.Describe(), "\n")+"\n")
}
