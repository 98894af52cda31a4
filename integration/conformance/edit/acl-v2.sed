# Lists are not supported: a hash replaces a list.
s/LPUSH writelist 10/HSET writelist f 10/
s/LPUSH notwrite 10/HSET notwrite f 10/
s/r lpush mylist 1/r zadd mylist 1 1/
# Calls of commands that are not here: MIGRATE, EVAL, GEORADIUS, those of sets, lists, streams and HyperLogLogs.
/DRYRUN command-test MIGRATE/d
/DRYRUN command-test EVAL/d
/DRYRUN command-test GEORADIUS/d
/DRYRUN command-test SISMEMBER/d
/DRYRUN command-test SINTERCARD/d
/DRYRUN command-test PFCOUNT/d
s/{STRLEN HLEN LLEN SCARD ZCARD XLEN}/{STRLEN HLEN ZCARD}/
