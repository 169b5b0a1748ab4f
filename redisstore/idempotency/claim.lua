-- ARGV  1 fingerprint  2 operation  3 owner  4 lease in us  5 retention in us
--       6 rerun, 0 or 1  7 the note of a run whose owner has vanished
-- Answers {outcome, now, ...}: what idempotency.Claim.Against says. 1 acquired
-- is followed by fence, attempt, created, lease, expires; the others by the
-- record.
local r = redis.call('HMGET', key, 'state', 'fingerprint', 'rerun', 'owner', 'fence', 'attempt', 'created', 'lease', 'expires')
local state = r[1]

local function begin(fence, attempt, created)
	local lease = now + ARGV[4]
	local expires = lease + ARGV[5]
	if r[1] then redis.call('HDEL', key, 'completed', 'status', 'header', 'body', 'tombstone', 'sealed') end
	redis.call('HSET', key, 'state', 'started', 'fingerprint', ARGV[1], 'operation', ARGV[2], 'note', '', 'rerun', ARGV[6],
		'owner', ARGV[3], 'fence', int(fence), 'attempt', int(attempt),
		'created', int(created), 'lease', int(lease), 'expires', int(expires))
	if ARGV[6] == '1' then ends(expires) elseif r[1] then redis.call('PERSIST', key) end
	return { 1, now, fence, attempt, created, lease, expires }
end

local function say(outcome)
	return { outcome, now, redis.call('HMGET', key, 'state', 'fingerprint', 'operation', 'note', 'rerun', 'owner', 'fence', 'attempt',
		'created', 'lease', 'completed', 'expires', 'status', 'header', 'tombstone', 'sealed', outcome == 3 and 'body' or 'none') }
end

if not state then return begin(1, 1, now) end
local fence, attempt, created = tonumber(r[5]), tonumber(r[6]), tonumber(r[7])
local lease, expires = tonumber(r[8]), tonumber(r[9])
if state == 'started' and r[4] == ARGV[3] then -- sent again: its answer was lost
	return { 1, now, fence, attempt, created, lease, expires }
end
local abandoned = state == 'started' and lease <= now
local takeover = abandoned and r[3] == '1'
if state ~= 'held' and expires <= now and (state ~= 'started' or takeover) then return begin(fence + 1, 1, now) end
if r[2] ~= ARGV[1] then return say(4) end
if state == 'completed' then return say(3) end
if state == 'held' then return say(5) end
if state == 'released' or (takeover and ARGV[6] == '1') then return begin(fence + 1, attempt + 1, created) end
if abandoned then
	redis.call('HSET', key, 'state', 'held', 'note', ARGV[7])
	redis.call('PERSIST', key)
	return say(5)
end
return say(2)
