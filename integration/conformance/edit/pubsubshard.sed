# SUNSUBSCRIBE without arguments: as in pubsub.sed
/without arguments"/,/^    }/{
    /^ *sunsubscribe \$rd1$/a\
        for {set i 0} {$i < 3} {incr i} {$rd1 read}
}
