# A subcommand of DEBUG that is not supported.
s/r DEBUG SEGFAULT/r DEBUG SLEEP 0/
# Sets are not supported: sorted sets replace them.
s/-@all +@set +acl$/-@all +@sortedset +acl/
s/r SADD myset a b c;/r ZADD myset 1 a;/
