package acl

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Default is the name of the default user: connections have its permissions until they log in.
const Default = "default"

// Settings are the settings of access control. Any goroutine may read and change them.
type Settings struct {
	MaxUsers    atomic.Int64 // largest number of users, including the default user
	MaxUserSize atomic.Int64 // largest memory of one user, bytes
	LogLength   atomic.Int64 // largest number of log entries
	AllChannels atomic.Int64 // 1: new users may access all channels; 0: no channel
}

// Defaults of Settings.
const (
	DefaultMaxUsers    = 10_000
	DefaultMaxUserSize = 64 << 10
	DefaultLogLength   = 128
)

// Init sets the defaults.
func (s *Settings) Init() {
	s.MaxUsers.Store(DefaultMaxUsers)
	s.MaxUserSize.Store(DefaultMaxUserSize)
	s.LogLength.Store(DefaultLogLength)
}

// Account holds the current User of a name. Connections keep a pointer to it.
type Account struct {
	name    string
	user    atomic.Pointer[User]
	deleted atomic.Bool
}

// Name returns the user's name.
func (a *Account) Name() string { return a.name }

// User returns the user's current state. A deleted user has no permissions.
func (a *Account) User() *User { return a.user.Load() }

// Deleted reports whether the user has been deleted: connections with this account must be closed.
// A new user of the same name has another account.
func (a *Account) Deleted() bool { return a.deleted.Load() }

// Users holds all users by name. Any goroutine may use it.
type Users struct {
	catalog  *Catalog
	settings *Settings
	nobody   *User // without permissions; for deleted users, and for logins with an unknown name

	// held over each change, and from reading a file until its users are set, or from listing the
	// users until they are written, so that older users never replace newer ones. No call takes it
	// but those that change users. Sync does without: a cluster does not wait for the disk of a
	// node, and changes users by Sync alone.
	changing sync.Mutex

	mu             sync.Mutex // protects the following fields; no lock is taken while it is held
	accounts       map[string]*Account
	defaultAccount *Account // never deleted
	initial        *User    // the default user, if the ACL file does not define it
}

// NewUsers returns Users with only the default user.
func NewUsers(c *Catalog, settings *Settings) *Users {
	s := &Users{
		catalog: c, settings: settings, defaultAccount: &Account{name: Default}, initial: NewDefault(c),
		nobody: mustApply(NewUser(c, false), "off", "#"+strings.Repeat("0", 64)),
	}
	s.defaultAccount.user.Store(s.initial)
	s.accounts = map[string]*Account{Default: s.defaultAccount}
	return s
}

// Catalog returns the commands that the rules refer to.
func (s *Users) Catalog() *Catalog { return s.catalog }

// Default returns the default user's account.
func (s *Users) Default() *Account { return s.defaultAccount }

// Find returns the account of a name, or nil.
func (s *Users) Find(name string) *Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts[name]
}

// All returns the accounts, sorted by name.
func (s *Users) All() (list []*Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *Account) int { return cmp.Compare(a.name, b.name) })
	return list
}

// Size returns how many users there are, and their memory in bytes.
func (s *Users) Size() (users int, bytes int64) {
	for _, a := range s.All() {
		users++
		bytes += int64(len(a.name) + a.User().size())
	}
	return users, bytes
}

// Login returns the account of a name if the password is correct and the user is on, or nil.
func (s *Users) Login(name string, password []byte) *Account {
	a, _ := s.Verify(name, password)
	return a
}

// Verify is Login. proven reports whether the password proves who the client is: not if the user
// accepts any.
func (s *Users) Verify(name string, password []byte) (a *Account, proven bool) {
	a, u := s.Find(name), s.nobody
	if a != nil {
		u = a.User()
	}
	if !u.accepts(password) {
		return nil, false
	}
	return a, !u.noPassword
}

// ErrUserName is the error of an invalid user name.
const ErrUserName = Error("Usernames can't contain spaces or null characters")

// ErrNoUserName is the error of an empty user name, which a file of users cannot hold.
const ErrNoUserName = Error("Usernames can't be empty")

func checkName(name string) error {
	switch {
	case name == "":
		return ErrNoUserName
	case hasSpaces(name):
		return ErrUserName
	}
	return nil
}

// Set applies rules to a user, which it creates if necessary. After an error nothing has changed.
func (s *Users) Set(name string, rules []string) error {
	if err := s.checkText(rules); err != nil {
		return err
	}
	return s.set(name, rules, false)
}

// Define replaces a user by one with these rules, such as those of Defined.
func (s *Users) Define(name string, rules []string) error { return s.set(name, rules, true) }

// set applies rules to a user, or to a new one that replaces it.
func (s *Users) set(name string, rules []string, replace bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	a, u := s.accounts[name], NewUser(s.catalog, s.allChannels())
	if a != nil && !replace {
		u = a.User()
	}
	made, err := u.Apply(rules, s.allChannels())
	if err != nil {
		return err
	}
	if err := s.checkSize(name, made); err != nil {
		return err
	}
	if a == nil {
		if err := s.checkCount(len(s.accounts) + 1); err != nil {
			return err
		}
		a = &Account{name: name}
		s.accounts[name] = a
	}
	a.user.Store(made)
	return nil
}

func (s *Users) allChannels() bool { return s.settings.AllChannels.Load() != 0 }

// checkText returns an error if the rules of one change are so long that applying them would take
// long.
func (s *Users) checkText(rules []string) error {
	size := 0
	for _, rule := range rules {
		size += len(rule) + 1
	}
	if most := s.settings.MaxUserSize.Load(); int64(size) > most {
		return Error(fmt.Sprintf("There are too many rules: they have %d bytes, and acl-max-user-size is %d",
			size, most))
	}
	return nil
}

// checkSize returns an error if a user takes too much memory, or if its line in a file would be so
// long that it is refused when it is read back.
func (s *Users) checkSize(name string, u *User) error {
	size, most := len(name)+u.size(), s.settings.MaxUserSize.Load()
	if int64(size+u.longestText()) > most { // rare: most users need no description for this
		size = max(size, len("user ")+len(name)+len(" ")+len(u.Describe()))
	}
	if int64(size) > most {
		return Error(fmt.Sprintf("The user is too large: its name, passwords and rules take %d bytes, and "+
			"acl-max-user-size is %d", size, most))
	}
	return nil
}

// checkCount returns an error if a number of users exceeds the limit.
func (s *Users) checkCount(users int) error {
	if most := s.settings.MaxUsers.Load(); int64(users) > most {
		return Error(fmt.Sprintf("There are too many users: acl-max-users is %d", most))
	}
	return nil
}

// SetDefaultPassword replaces the passwords of the default user by one. It also applies after a
// later Load of a file that does not define this user. If the password is empty, the user needs
// none.
func (s *Users) SetDefaultPassword(password string) {
	rules := []string{"resetpass", ">" + password}
	if password == "" {
		rules[1] = "nopass"
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.defaultAccount.user.Store(mustApply(s.defaultAccount.User(), rules...))
	s.initial = mustApply(s.initial, rules...)
}

// ErrDefaultStays is the error of deleting the default user.
const ErrDefaultStays = Error("The 'default' user cannot be removed")

// Delete deletes users and returns how many of them existed. The caller must close their
// connections.
func (s *Users) Delete(names []string) (deleted int, err error) {
	if slices.Contains(names, Default) {
		return 0, ErrDefaultStays
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if a := s.accounts[name]; a != nil {
			s.drop(a)
			delete(s.accounts, name)
			deleted++
		}
	}
	return deleted, nil
}

// drop marks an account as deleted and removes its permissions.
func (s *Users) drop(a *Account) {
	a.user.Store(s.nobody)
	a.deleted.Store(true)
}

// MaxPasswordBits is the largest length of a generated password.
const MaxPasswordBits = 4096

// GeneratePassword returns a random password in hexadecimal. bits, from 1 to MaxPasswordBits, is
// rounded up to a multiple of 4.
func GeneratePassword(bits int) string {
	raw := make([]byte, (bits+7)/8)
	rand.Read(raw) // never returns an error
	return hex.EncodeToString(raw)[:(bits+3)/4]
}
