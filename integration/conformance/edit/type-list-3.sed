# How Redis packs and compresses lists has no settings here; no reply depends on it.
/quicklist-packed-threshold/d
/list-max-ziplist-size/d
/list-compress-depth/d
