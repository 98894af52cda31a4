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

// Default is the name of the default user: a connection acts as this user until it logs in.
const Default = "default"

// Settings are those of access control. Any goroutine may read and change them.
type Settings struct {
	MaxUsers    atomic.Int64 // how many users there may be, with the default user
	MaxUserSize atomic.Int64 // bytes that one user may take
	LogLength   atomic.Int64 // entries of the log
	AllChannels atomic.Int64 // 1: new users may access all channels; 0: none
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

// User returns what the user may do now, which is nothing if the user has been deleted.
func (a *Account) User() *User { return a.user.Load() }

// Deleted reports whether the user has been deleted: connections that act as this user are to be
// closed. A new user of the same name has another account.
func (a *Account) Deleted() bool { return a.deleted.Load() }

// Users holds all users by name. Any goroutine may use it.
type Users struct {
	catalog  *Catalog
	settings *Settings
	nobody   *User // may do nothing; logins as unknown users are compared with it

	mu             sync.Mutex // of what follows; no lock is taken under it
	accounts       map[string]*Account
	defaultAccount *Account // is never deleted
	initial        *User    // the default user, if the ACL file does not define it
}

// NewUsers returns the default user alone.
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

// Find returns an account by name; nil if there is none.
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

// Login returns the account of a user that accepts a password; nil if there is none.
func (s *Users) Login(name string, password []byte) *Account {
	a, u := s.Find(name), s.nobody
	if a != nil {
		u = a.User()
	}
	if !u.accepts(password) {
		return nil
	}
	return a
}

// ErrUserName is the error of a name that no user can have.
const ErrUserName = Error("Usernames can't contain spaces or null characters")

// Set creates or changes a user by rules: by all of them or, after an error, by none.
func (s *Users) Set(name string, rules []string) error {
	if hasSpaces(name) {
		return ErrUserName
	}
	if err := s.checkText(rules); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, u := s.accounts[name], NewUser(s.catalog, s.allChannels())
	if a != nil {
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

// checkText returns an error if the rules of one change are so long that it would take long to
// apply them.
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

// checkSize returns an error if a user takes too much memory.
func (s *Users) checkSize(name string, u *User) error {
	if size, most := len(name)+u.size(), s.settings.MaxUserSize.Load(); int64(size) > most {
		return Error(fmt.Sprintf("The user is too large: its name, passwords and patterns take %d bytes, and "+
			"acl-max-user-size is %d", size, most))
	}
	return nil
}

// checkCount returns an error if there may not be so many users.
func (s *Users) checkCount(users int) error {
	if most := s.settings.MaxUsers.Load(); int64(users) > most {
		return Error(fmt.Sprintf("There are too many users: acl-max-users is %d", most))
	}
	return nil
}

// SetDefaultPassword replaces the passwords of the default user by one, also for a later Load of a
// file that does not define this user. With an empty one the user needs no password.
func (s *Users) SetDefaultPassword(password string) {
	rules := []string{"resetpass", ">" + password}
	if password == "" {
		rules[1] = "nopass"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.defaultAccount.user.Store(mustApply(s.defaultAccount.User(), rules...))
	s.initial = mustApply(s.initial, rules...)
}

// ErrDefaultStays is the error of deleting the default user.
const ErrDefaultStays = Error("The 'default' user cannot be removed")

// Delete deletes users and returns how many of them existed. The connections that act as them are
// to be closed.
func (s *Users) Delete(names []string) (deleted int, err error) {
	if slices.Contains(names, Default) {
		return 0, ErrDefaultStays
	}
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

// drop takes all permissions from a deleted user.
func (s *Users) drop(a *Account) {
	a.user.Store(s.nobody)
	a.deleted.Store(true)
}

// MaxPasswordBits is the most bits that GeneratePassword takes.
const MaxPasswordBits = 4096

// GeneratePassword returns a random password in hexadecimal of at least 1 to MaxPasswordBits bits.
func GeneratePassword(bits int) string {
	raw := make([]byte, (bits+7)/8)
	rand.Read(raw) // never returns an error
	return hex.EncodeToString(raw)[:(bits+3)/4]
}
