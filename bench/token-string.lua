-- The bucket of token.lua in a string "level time": one GET and one SET, faster and smaller than the hash.
-- KEYS[1] the string; ARGV: capacity, refill, period in ms, cost.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local capacity, refill, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local full = capacity * period
local level = full
local state = redis.call('GET', KEYS[1])
if state then
    local left, since = string.match(state, '^(%d+) (%d+)$')
    level = math.min(full, left + (now - since) * refill)
end
local need = cost * period
if level < need then
    return {0, capacity, math.floor(level / period), math.ceil((need - level) / refill), math.ceil((full - level) / refill)}
end
level = level - need
local reset = math.ceil((full - level) / refill)
redis.call('SET', KEYS[1], string.format('%d %d', level, now), 'PX', reset)
return {1, capacity, math.floor(level / period), 0, reset}
