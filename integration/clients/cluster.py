"""redis-py's RedisCluster in a cluster whose nodes fail. See clients_test.go for what it reads and prints."""
import json
import sys
import threading
import time

from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException, RedisError

prefix, addresses, expected = sys.argv[1], [a.rsplit(":", 1) for a in sys.argv[2].split(",")], int(sys.argv[3])
# by default, redis-py waits for ever for a node that does not answer
r = RedisCluster(startup_nodes=[ClusterNode(h, int(p)) for h, p in addresses], decode_responses=True,
                 socket_timeout=3, socket_connect_timeout=1)


def key(i):
    return "%s:%d" % (prefix, i)


def first():
    for i in range(100):
        assert r.set(key(i), i) and r.get(key(i)) == str(i)
    pipe = r.pipeline()
    for i in range(100):
        pipe.get(key(i))
    for i in range(20):
        pipe.execute_command("RL.TOKEN", key(1000 + i), 10, 1, "1h")
    replies = pipe.execute()
    assert replies[:100] == [str(i) for i in range(100)], replies
    assert all(reply[0] == 1 for reply in replies[100:]), replies
    assert r.execute_command("RL.SLIDE", key(2000), 2, "1h")[:3] == [1, 2, 1]
    tag = "{%s}" % prefix
    both = [tag + "a", "SLIDE", 1, "1h", tag + "b", "FIXED", 1, "1h"]
    assert r.execute_command("RL.ALL", *both)[0] == 1
    assert r.execute_command("RL.ALL", *both)[0] == 0
    try:
        r.execute_command("RL.ALL", key(1), "SLIDE", 1, "1h", key(2), "SLIDE", 1, "1h")
        raise SystemExit("keys of two slots were accepted")
    except (RedisClusterException, RedisError) as error:
        assert "slot" in str(error).lower(), error
    assert r.hset(tag + "h", mapping={"f": "v"}) == 1 and r.hgetall(tag + "h") == {"f": "v"}
    assert r.zadd(tag + "z", {"m": 1}) == 1 and r.zscore(tag + "z", "m") == 1
    assert r.mset_nonatomic({key(i): "x" for i in range(10)}) and r.mget_nonatomic([key(3), key(4)]) == ["x", "x"]
    assert r.bzpopmin(tag + "none", timeout=0.01) is None
    assert all(info["cluster_enabled"] == 1 for info in r.info(target_nodes=RedisCluster.ALL_NODES).values())


def size():
    return r.dbsize(target_nodes=RedisCluster.PRIMARIES)  # without that, it asks one node alone, as with Redis


def whole():
    """Calls on all nodes find all keys: each node answers for the slots that it leads."""
    assert r.flushall()
    names = sorted(key(i) for i in range(100))
    for name in names:
        assert r.set(name, "v")
    assert size() == 100, size()
    assert sorted(r.keys("*", target_nodes=RedisCluster.PRIMARIES)) == names
    assert sorted(r.scan_iter(count=10)) == names
    assert not r.get_replicas(), r.get_nodes()
    assert r.flushall()
    assert size() == 0, size()


def limit(k):
    return 10 + 50 * k


def hits(k):
    """The hits in a key's log. A group that has just been handed over is asked again."""
    begun = time.monotonic()
    while True:
        try:
            return r.zcard(key(3000 + k))
        except (RedisClusterException, RedisError, OSError):
            if time.monotonic() - begun > 60:
                raise
            time.sleep(0.01)


def keys():
    """The number of keys. It is asked again while groups change their leaders."""
    begun, count = time.monotonic(), -1
    while count != expected and time.monotonic() - begun < 60:
        time.sleep(0.01)
        try:
            count = size()
        except (RedisClusterException, RedisError, OSError):
            pass
    return count


def calls(ended):
    admitted, errors, longest, done = [0] * 20, {}, 0.0, 0
    while not ended.is_set():
        right = 0
        for k in range(20):
            begun = time.monotonic()
            try:
                if r.execute_command("RL.SLIDE", key(3000 + k), limit(k), "1h")[0] == 1:
                    admitted[k] += 1
                done, right = done + 1, right + 1
            except (RedisClusterException, RedisError, OSError) as error:
                kind = str(error).split(" ")[0] if str(error).split(" ")[0].isupper() else type(error).__name__
                errors[kind] = errors.get(kind, 0) + 1
            longest = max(longest, time.monotonic() - begun)
        if right == 20:
            print("progress", int(longest * 1000), flush=True)
            longest = 0.0
    held = [hits(k) for k in range(20)]
    return {"admitted": admitted, "held": held, "errors": errors, "calls": done,
            "keys": keys()}


first()
begun = time.monotonic()
while True:
    try:
        whole()
        break
    except (AssertionError, RedisClusterException, RedisError, OSError):  # a group may have another leader just now
        if time.monotonic() - begun > 60:
            raise
print("ready", flush=True)
sys.stdin.readline()
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
print(json.dumps(calls(ended)), flush=True)
