# Rules name commands that are not here (scripts, pub/sub): the tests are about others.
s/r ACL setuser antirez +eval +multi +exec/r ACL setuser antirez +multi +exec; catch {r ACL setuser antirez +eval}/
s/r ACL setuser antirez resetchannels +publish/r ACL setuser antirez resetchannels; catch {r ACL setuser antirez +publish}/
# Categories without commands here cannot be told from the rules of a user, nor set from list: both have SORT alone.
/set categories \[r ACL CAT\]/{
n
a\
        set categories [lmap c $categories {if {[r ACL CAT $c] eq {} || $c in {set list}} continue; set c}]
}
# A subcommand of DEBUG that is not here.
s/r DEBUG SEGFAULT/r DEBUG SLEEP 0/
# A category of commands that are not here: sorted sets in the place of sets.
s/-@all +@set +acl$/-@all +@sortedset +acl/
s/r SADD myset a b c;/r ZADD myset 1 a;/
