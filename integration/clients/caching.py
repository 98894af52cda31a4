"""redis-py's cache of its own, which the server tells of changes (RESP3), and messages. See clients_cache_test.go."""
import sys
import threading
import time

import redis
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection

port, certificates = int(sys.argv[1]), sys.argv[2:]
more = {"protocol": 3}
if certificates:
    more.update(ssl=True, ssl_ca_certs=certificates[0] + "/ca.crt", ssl_certfile=certificates[0] + "/client.crt",
                ssl_keyfile=certificates[0] + "/client.key")


def client(**options):
    return redis.Redis(host="localhost", port=port, **more, **options)


plain = client()
try:
    client(cache_config=CacheConfig()).get("a")
    raise SystemExit("redis-py keeps copies of a server that is older than 7.4")
except redis.ConnectionError as refusal:
    assert "7.4 or later" in str(refusal), refusal
CacheProxyConnection.MIN_ALLOWED_VERSION = "7.0.0"
cached = client(cache_config=CacheConfig(max_size=100))


def calls(command):
    return plain.info("commandstats").get("cmdstat_" + command, {"calls": 0})["calls"]


def becomes(want, read):
    until = time.time() + 60
    while True:
        value = read()
        if value == want:
            return
        assert time.time() < until, (value, want)
        time.sleep(0.001)


def kept(command, read):
    """A value is asked for once, and then until it changes not again."""
    before = calls(command)
    value = read()
    for _ in range(20):
        assert read() == value
    assert calls(command) == before + 1, (command, calls(command) - before)


def changes():
    plain.set("s", 1)
    kept("get", lambda: cached.get("s"))
    for change, want in [
        (lambda: plain.set("s", 2), b"2"), (lambda: plain.incr("s"), b"3"), (lambda: plain.delete("s"), None),
        (lambda: plain.set("s", 4), b"4"), (lambda: plain.rename("s", "t"), None), (lambda: plain.copy("t", "s"), b"4"),
        (lambda: plain.eval("return redis.call('SET', KEYS[1], 'lua')", 1, "s"), b"lua"),
        (lambda: plain.pipeline(transaction=True).set("s", 5).execute(), b"5"), (lambda: cached.set("s", 6), b"6"),
        (lambda: plain.flushall(), None),
    ]:
        change()
        becomes(want, lambda: cached.get("s"))
    plain.hset("h", "f", "v")
    kept("hgetall", lambda: cached.hgetall("h"))
    plain.hset("h", "f", "w")
    becomes({b"f": b"w"}, lambda: cached.hgetall("h"))
    plain.zadd("z", {"m": 1})
    kept("zrange", lambda: cached.zrange("z", 0, -1))
    plain.zadd("z", {"n": 2})
    becomes([b"m", b"n"], lambda: cached.zrange("z", 0, -1))
    plain.rpush("l", "a")
    kept("lrange", lambda: cached.lrange("l", 0, -1))
    plain.lpop("l")
    becomes([], lambda: cached.lrange("l", 0, -1))
    plain.sadd("e", "m")
    kept("smembers", lambda: cached.smembers("e"))
    plain.srem("e", "m")
    becomes(set(), lambda: cached.smembers("e"))
    plain.mset({"a": 1, "b": 2})
    kept("mget", lambda: cached.mget(["a", "b"]))
    plain.set("b", 3)
    becomes([b"1", b"3"], lambda: cached.mget(["a", "b"]))
    plain.set("ends", 1, px=60)
    cached.get("ends")
    becomes(None, lambda: cached.get("ends"))
    for i in range(300):
        cached.get("many:%d" % i)
    assert cached.get_cache().size <= 100


def reconnects():
    """After its connection has ended, nothing of it is believed."""
    plain.set("k", "old")
    becomes(b"old", lambda: cached.get("k"))
    for one in plain.client_list():
        if "t" in one["flags"]:
            plain.client_kill_filter(_id=one["id"])
    plain.set("k", "new")

    def read():
        try:
            return cached.get("k")
        except redis.ConnectionError:
            return None
    becomes(b"new", read)


def many():
    """Several clients, each with a cache of its own, agree in the end."""
    # in several threads of one client version 7.4.1 hangs, with Redis as well: they read each other's replies
    clients = [client(cache_config=CacheConfig()) for _ in range(6)]
    stop = threading.Event()

    def read(one):
        while not stop.is_set():
            one.mget(["n", "m"])
            one.get("n")
    readers = [threading.Thread(target=read, args=[one]) for one in clients]
    for one in readers:
        one.start()
    for i in range(500):
        plain.set("n", i)
    stop.set()
    for one in readers:
        one.join()
    for one in clients:
        becomes(b"499", lambda: one.get("n"))


def messages():
    listener = client().pubsub(ignore_subscribe_messages=True)
    listener.subscribe("news")
    listener.psubscribe("spo*")
    listener.ssubscribe("shard")

    def got(kind, channel, data):
        until = time.time() + 60
        while time.time() < until:
            message = listener.get_message(timeout=1)
            if message:
                assert (message["type"], message["channel"], message["data"]) == (kind, channel, data), message
                return
        raise SystemExit("no message of " + str(channel))
    becomes([(b"news", 1)], lambda: plain.pubsub_numsub("news"))
    becomes(1, plain.pubsub_numpat)
    becomes([(b"shard", 1)], lambda: plain.pubsub_shardnumsub("shard"))
    for data in [b"", b"hello", bytes(range(256)), b"x" * (1 << 20)]:
        assert plain.publish("news", data) == 1
        got("message", b"news", data)
        assert plain.publish("sports", data) == 1
        got("pmessage", b"sports", data)
        assert plain.spublish("shard", data) == 1
        got("smessage", b"shard", data)
    assert listener.ping() is not False
    listener.close()


changes()
reconnects()
many()
messages()
print("ok")
