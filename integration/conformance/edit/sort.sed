# Lists, sets and their settings are not supported: a sorted set of the same elements replaces them.
s/r \$cmd tosort \$i/r zadd tosort 0 $i/
/"list-max-ziplist-size" 32/d
/"set-max-intset-entries" 32/d
