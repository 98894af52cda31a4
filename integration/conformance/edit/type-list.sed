# How Redis packs and compresses lists has no settings here; no reply depends on it.
s/r debug quicklist-packed-threshold .*/set unused OK/
s/r config set list-[a-z-]* .*/set unused OK/
/list-max-ziplist-size/d
/list-compress-depth/d

# Connections are served side by side here: a client has been served before the next one is called.
/BRPOPLPUSH with multiple blocked clients/,/^    }/ {
    s/\$rd1 brpoplpush.*/&; wait_for_blocked_clients_count 1/
    s/\$rd2 brpoplpush.*/&; wait_for_blocked_clients_count 2/
}
/does not affect WATCH while still blocked/,/^    }/ {
    s/\$watching_client exec/&; set res [$watching_client read]/
    /^ *set res /d
}
