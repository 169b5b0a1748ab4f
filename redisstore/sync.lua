-- One report to a shared retry budget, in one atomic step. What it must do
-- is written down at budget.Store.
--
-- KEYS  1 window   hash: "gen", "born", "held", "live", and a ring of 32 slots
--                  "s0".."s31", each "number initial retries"
--       2 known    hash: instance -> "initial retries hold live"; "gen"
--       3 leases   sorted set: instance by the end of its lease, later by the
--                  time when it is forgotten, both in ms
-- ARGV  1 width of a slot in us  2 instance  3 initial  4 retries  5 hold
--       6 want  7 limit  8 lease in ms  9 leave  10 window in ms
--       11 recent slots "initial retries;...", newest first
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local ms = math.floor(us / 1000)
local width, id = tonumber(ARGV[1]), ARGV[2]
local slot = math.floor(us / width)
local hold, want, limit = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local lease, leave, window = tonumber(ARGV[8]), ARGV[9] == '1', tonumber(ARGV[10])
local ring = 32

local function int(n) return string.format('%.0f', n) end

-- The three keys belong together: what lost one of them begins anew.
local function size(key, of) return tonumber(redis.call(of, key)) end
local gen = redis.call('HGET', KEYS[1], 'gen')
if not gen or gen ~= redis.call('HGET', KEYS[2], 'gen')
	or size(KEYS[2], 'HLEN') - 1 ~= size(KEYS[3], 'ZCARD') then
	redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
	gen = int(us)
	redis.call('HSET', KEYS[1], 'gen', gen, 'born', int(ms), 'held', 0, 'live', 0)
	redis.call('HSET', KEYS[2], 'gen', gen)
end

local meta, slots, changed = {}, {}, {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
	local n, initial, retries = string.match(flat[i + 1], '^(%d+) (%d+) (%d+)$')
	if n then
		slots[tonumber(n)] = { tonumber(initial), tonumber(retries) }
	else
		meta[flat[i]] = tonumber(flat[i + 1])
	end
end
local held, live = meta.held, meta.live

local function book(n, initial, retries)
	local s = slots[n] or { 0, 0 }
	slots[n] = { s[1] + initial, s[2] + retries }
	changed[n] = true
end

-- What the lost held counts as spent. They stay known for two windows, so that
-- nothing is booked twice when they come back.
for _, lost in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', int(ms), 'LIMIT', 0, 100)) do
	local i, r, h, alive = string.match(redis.call('HGET', KEYS[2], lost) or '0 0 0 0', '(%d+) (%d+) (%d+) (%d)')
	if alive == '1' then
		held, live = held - h, live - 1
		if tonumber(h) > 0 then book(slot, 0, tonumber(h)) end
		redis.call('HSET', KEYS[2], lost, i .. ' ' .. r .. ' 0 0')
		redis.call('ZADD', KEYS[3], int(ms + 2 * window), lost)
	else
		redis.call('HDEL', KEYS[2], lost)
		redis.call('ZREM', KEYS[3], lost)
	end
end

-- What is new since the instance last came; all of it, of an unknown one.
local newInitial, newRetries = math.huge, math.huge
local known = redis.call('HGET', KEYS[2], id)
if known then
	local i, r, h, alive = string.match(known, '(%d+) (%d+) (%d+) (%d)')
	newInitial, newRetries = ARGV[3] - i, ARGV[4] - r
	held, live = held - h, live - alive
end
local at = slot
for i, r in string.gmatch(ARGV[11], '(%d+) (%d+);') do
	if newInitial <= 0 and newRetries <= 0 then break end
	i = math.min(tonumber(i), math.max(newInitial, 0))
	r = math.min(tonumber(r), math.max(newRetries, 0))
	newInitial, newRetries = newInitial - i, newRetries - r
	if i + r > 0 then book(at, i, r) end
	at = at - 1
end
for age = 0, 30 do -- refunds
	if newRetries >= 0 then break end
	local s = slots[slot - age]
	if s then
		local back = math.min(s[2], -newRetries)
		newRetries = newRetries + back
		if back > 0 then book(slot - age, 0, -back) end
	end
end

local initial, retries = 0, 0
for n, s in pairs(slots) do
	local age = slot - n
	if age < 30 and age >= 0 then initial = initial + s[1] end
	if age <= 30 then retries = retries + s[2] end
end

local granted = hold
if ms - meta.born >= lease then
	granted = hold + math.max(0, math.min(want - hold, limit - retries - held - hold))
end
held = held + granted

if leave then
	redis.call('HDEL', KEYS[2], id)
	redis.call('ZREM', KEYS[3], id)
else
	live = live + 1
	redis.call('HSET', KEYS[2], id, ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. int(granted) .. ' 1')
	redis.call('ZADD', KEYS[3], int(ms + lease), id)
end
local set = { 'held', int(held), 'live', int(live) }
for n in pairs(changed) do
	if slot - n <= 30 then
		set[#set + 1] = 's' .. int(n % ring)
		set[#set + 1] = int(n) .. ' ' .. int(slots[n][1]) .. ' ' .. int(slots[n][2])
	end
end
redis.call('HSET', KEYS[1], unpack(set))
local keep = int(3 * window + lease)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, keep) end
return { initial, retries, held, granted, live }
