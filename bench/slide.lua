-- An exact sliding window as usually written for Redis. It returns the five integers of RL.SLIDE.
-- KEYS[1] the sorted set of hits; ARGV: limit, window in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = redis.call('ZCARD', KEYS[1])
if used < limit then
    -- Unique: two hits of the same microsecond differ in the number of hits before them.
    redis.call('ZADD', KEYS[1], now, time[1] .. '-' .. time[2] .. '-' .. used)
    redis.call('PEXPIRE', KEYS[1], window)
    return {1, limit, limit - used - 1, 0, window}
end
-- The hit that must leave before the next is admitted, and the last one to leave.
local leaver = redis.call('ZRANGE', KEYS[1], used - limit, used - limit, 'WITHSCORES')
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
return {0, limit, 0, leaver[2] + window - now, last[2] + window - now}
