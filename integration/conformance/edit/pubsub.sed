# UNSUBSCRIBE without arguments: read the replies before another connection publishes. Redis has run the call by then,
# because its only thread has read it first.
/without arguments"/,/^    }/{
    /^ *p\{0,1\}unsubscribe \$rd1$/a\
        for {set i 0} {$i < 3} {incr i} {$rd1 read}
}
