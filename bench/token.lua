-- A token bucket in integers, in a hash as usually written for Redis. It returns the five integers of RL.TOKEN.
-- KEYS[1] a hash: level, in 1/period of a token, and time; ARGV: capacity, refill, period in ms, cost.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local capacity, refill, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local full = capacity * period
local level = full
local state = redis.call('HMGET', KEYS[1], 'level', 'time')
if state[1] then
    level = math.min(full, state[1] + (now - state[2]) * refill)
end
local need = cost * period
if level < need then
    return {0, capacity, math.floor(level / period), math.ceil((need - level) / refill), math.ceil((full - level) / refill)}
end
level = level - need
local reset = math.ceil((full - level) / refill)
redis.call('HSET', KEYS[1], 'level', level, 'time', now)
redis.call('PEXPIRE', KEYS[1], reset)
return {1, capacity, math.floor(level / period), 0, reset}
