"""Programs as articles about rate limiting have them: scripts that people copy. They run here as on Redis."""
import itertools
import uuid

SLIDING_WINDOW = """
-- KEYS[1] the log; ARGV now (ms), window (ms), limit, id of the request
local key = KEYS[1]
local now = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local limit = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
local count = redis.call('ZCARD', key)
if count < limit then
    redis.call('ZADD', key, now, ARGV[4])
    redis.call('PEXPIRE', key, window)
    return {1, limit - count - 1, 0}
end
local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
return {0, 0, oldest[2] + window - now}
"""

SLIDING_WINDOW_SERVER_TIME = """
redis.replicate_commands()
local current_time = redis.call('TIME')
local trim_time = tonumber(current_time[1]) - ARGV[1]
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, trim_time)
local request_count = redis.call('ZCARD', KEYS[1])
if request_count < tonumber(ARGV[2]) then
    redis.call('ZADD', KEYS[1], current_time[1], current_time[1] .. current_time[2] .. ':' .. ARGV[3])
    redis.call('EXPIRE', KEYS[1], ARGV[1])
    return 0
end
return 1
"""

TOKEN_BUCKET = """
-- ARGV: capacity, tokens per second, now (s, with a fraction), requested tokens
local capacity = tonumber(ARGV[1])
local rate = tonumber(ARGV[2])
local now = tonumber(ARGV[3])
local requested = tonumber(ARGV[4])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'last_refill')
local tokens = tonumber(bucket[1]) or capacity
local last_refill = tonumber(bucket[2]) or now
local elapsed = math.max(0, now - last_refill)
tokens = math.min(capacity, tokens + elapsed * rate)
local allowed = false
if tokens >= requested then
    tokens = tokens - requested
    allowed = true
end
redis.call('HMSET', KEYS[1], 'tokens', tokens, 'last_refill', now)
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) * 2)
local wait = 0
if not allowed then
    wait = (requested - tokens) / rate
end
return {allowed and 1 or 0, tostring(tokens), string.format('%.3f', wait), cjson.encode({tokens = tokens, at = now})}
"""

PACKED_PERMITS = """
-- ARGV: permits, now (ms), window (ms), limit, random id
local used = 0
local expired = redis.call('ZRANGEBYSCORE', KEYS[1], 0, tonumber(ARGV[2]) - ARGV[3])
for i, v in ipairs(expired) do
    local random, permits = struct.unpack('Bc0I', v)
    used = used - permits
end
if #expired > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, tonumber(ARGV[2]) - ARGV[3])
end
local value = redis.call('GET', KEYS[2])
if value == false then
    value = ARGV[4]
end
value = tonumber(value) - used
if value < tonumber(ARGV[1]) then
    local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
    local id, permits = struct.unpack('Bc0I', first[1])
    return {value, first[2], id, permits, struct.size('>I2hlL')}
end
redis.call('ZADD', KEYS[1], ARGV[2], struct.pack('Bc0I', string.len(ARGV[5]), ARGV[5], ARGV[1]))
redis.call('SET', KEYS[2], value - ARGV[1])
return nil
"""

INCR_WINDOW = """
local current
current = redis.call("incr", KEYS[1])
if tonumber(current) == 1 then
    redis.call("expire", KEYS[1], ARGV[2])
end
if tonumber(current) > tonumber(ARGV[1]) then
    return {false, current}
end
return {true, current, redis.call("ttl", KEYS[1]) > 0}
"""

DAY, START = 86400, 1_763_844_000  # seconds


def programs(connect, limit):
    """Returns tuples like those of LIBRARIES. What a hit says besides is the reply and what the keys then hold."""
    steps = {}

    def step(addr, key):
        """A clock of the client: the number of the call."""
        return next(steps.setdefault((addr, key), itertools.count()))

    def client_time(addr):
        client = connect(addr)
        script = client.register_script(SLIDING_WINDOW)

        def hit(key):
            n = step(addr, key)
            reply = script(["log:" + key], [START * 1000 + n * 1001, DAY * 1000, limit, f"request-{n}"])
            return reply[0] == 1, (reply, client.zrange("log:" + key, 0, -1, withscores=True))
        return hit

    def server_time(addr):
        client = connect(addr)
        script = client.register_script(SLIDING_WINDOW_SERVER_TIME)

        def hit(key):
            reply = script(["times:" + key], [DAY, limit, uuid.uuid4().hex])
            return reply == 0, (reply, client.zcard("times:" + key))
        return hit

    def bucket(addr):
        client = connect(addr)
        script = client.register_script(TOKEN_BUCKET)

        def hit(key):
            now = START + step(addr, key) * 7.123
            reply = script(["bucket:" + key], [limit, 1 / DAY, now, 1])
            return reply[0] == 1, (reply, client.hgetall("bucket:" + key))
        return hit

    def permits(addr):
        client = connect(addr)
        script = client.register_script(PACKED_PERMITS)

        def hit(key):
            n = step(addr, key)
            keys = ["{" + key + "}:permits", "{" + key + "}:value"]
            reply = script(keys, [3, START * 1000 + n * 1001, DAY * 1000, 3 * limit + 2, f"id-{n}"])
            return reply is None, (reply, client.zrange(keys[0], 0, -1, withscores=True), client.get(keys[1]))
        return hit

    def window(addr):
        script = connect(addr).register_script(INCR_WINDOW)

        def hit(key):
            reply = script(["incr:" + key], [limit, DAY])
            return reply[0] == 1, reply
        return hit

    return [("script: log, client's time", limit, client_time), ("script: log, server's time", limit, server_time),
            ("script: bucket of fractions", limit, bucket), ("script: packed permits", limit, permits),
            ("script: INCR and EXPIRE", limit, window)]
