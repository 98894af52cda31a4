package acl

import (
	"math/rand/v2"
	"strings"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// ruleWords are correct and wrong rules to choose from at random.
func ruleWords() []string {
	a := strings.Repeat("a", 64)
	words := strings.Fields(
		"on off nopass resetpass >a >b <a <b #" + a + " #zz !" + a + " allkeys ~* resetkeys ~a* ~b " +
			"%R~a* %W~c %RW~d* %~x %RR~x %X~x % %RW %rw~e ~ ~[ab]? ~\\a* &* &news &n* & resetchannels allchannels " +
			"+@all -@all " +
			"allcommands nocommands +get -get +config|get -config|get +config -config +select|0 +select| " +
			"+config|get|x " +
			"+nosuch -nosuch|x +client|nosuch clearselectors reset (bad ~q) (+nosuch) () ( ) sanitize-payload " +
			"skip-sanitize-payload bad +acl|whoami -select|1 ON +GET +@READ %R~* %W~*",
	)
	words = append(words, "(~x* +get)", "(+@all -@admin ~y)", "( ~z +set )", "~with space", "")
	for _, category := range Categories[:len(Categories)-1] { // Redis has no category ratelimit
		words = append(words, "+@"+category, "-@"+category)
	}
	return words
}
