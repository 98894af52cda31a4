# How Redis packs lists has no settings here; no reply depends on it.
/list-max-ziplist-size/d
/list-compress-depth/d
