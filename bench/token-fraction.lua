-- A token bucket with fractional tokens, in a hash, as many articles have it. It returns whether the call is admitted,
-- and the whole tokens that remain. KEYS[1] a hash: tokens and time; ARGV: capacity, tokens a second, cost.
local capacity, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000

local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'time')
local tokens, last = tonumber(bucket[1]), tonumber(bucket[2])
if tokens == nil then
    tokens, last = capacity, now
end
tokens = math.min(capacity, tokens + math.max(0, now - last) * rate)
local admitted = 0
if tokens >= cost then
    tokens, admitted = tokens - cost, 1
end
redis.call('HMSET', KEYS[1], 'tokens', tostring(tokens), 'time', tostring(now))
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) * 2)
return {admitted, math.floor(tokens)}
