# How Redis packs lists has no settings here; no reply depends on it.
/"list-max-ziplist-size" 32/d
