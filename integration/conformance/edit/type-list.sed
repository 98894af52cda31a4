# How Redis packs and compresses lists has no settings here; no reply depends on it.
s/r debug quicklist-packed-threshold .*/set unused OK/
s/r config set list-[a-z-]* .*/set unused OK/
/list-max-ziplist-size/d
/list-compress-depth/d
