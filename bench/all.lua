-- Sliding windows over several keys, all or nothing, as usually written for Redis: first all keys are checked, then all
-- are written. It returns the six integers of RL.ALL; the last is the index of the key that the others describe.
-- KEYS the sorted sets of hits; ARGV: limit, window in ms, for all of them.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])

local used, remaining, scarcest, refused, retry, reset = {}, limit, 0, -1, 0, 0
for i, key in ipairs(KEYS) do
    redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
    used[i] = redis.call('ZCARD', key)
    if used[i] >= limit then
        local leaver = redis.call('ZRANGE', key, used[i] - limit, used[i] - limit, 'WITHSCORES')
        if leaver[2] + window - now > retry then
            refused, retry = i - 1, leaver[2] + window - now
        end
    end
    if limit - used[i] - 1 < remaining then
        scarcest, remaining = i - 1, limit - used[i] - 1
    end
end
if refused >= 0 then
    for _, key in ipairs(KEYS) do
        local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
        if last[2] and last[2] + window - now > reset then
            reset = last[2] + window - now
        end
    end
    return {0, limit, 0, retry, reset, refused}
end
for i, key in ipairs(KEYS) do
    -- Unique: two hits of the same microsecond differ in the number of hits before them.
    redis.call('ZADD', key, now, time[1] .. '-' .. time[2] .. '-' .. used[i])
    redis.call('PEXPIRE', key, window)
end
return {1, limit, remaining, 0, window, scarcest}
