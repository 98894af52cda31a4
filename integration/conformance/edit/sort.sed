# There are no lists and no sets, nor their parameters: what is sorted is a sorted set, of the same elements.
s/r \$cmd tosort \$i/r zadd tosort 0 $i/
/"list-max-ziplist-size" 32/d
/"set-max-intset-entries" 32/d
