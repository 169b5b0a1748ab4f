-- ARGV  1 fingerprint  2 operation  3 owner  4 lease in us  5 retention in us
--       6 rerun, 0 or 1  7 the note of a run whose owner has vanished
-- Answers {outcome, now, ...}: what idempotency.Claim.Against says. 1 acquired
-- is followed by fence, attempt, created, lease, expires; the others by the
-- record.
local state = redis.call('HGET', key, 'state')

local function begin(fence, attempt, created)
	local lease = now + ARGV[4]
	local expires = lease + ARGV[5]
	if state then redis.call('HDEL', key, 'note', 'completed', 'status', 'header', 'body', 'tombstone', 'sealed') end
	redis.call('HSET', key, 'state', 'started', 'fingerprint', ARGV[1], 'operation', ARGV[2], 'rerun', ARGV[6], 'owner', ARGV[3],
		'fence', fence, 'attempt', attempt, 'created', int(created), 'lease', int(lease), 'expires', int(expires))
	if ARGV[6] == '1' then ends(expires) elseif state then redis.call('PERSIST', key) end
	return { 1, now, fence, attempt, created, lease, expires }
end

if not state then return begin(1, 1, now) end

local done = state == 'completed'
local r = redis.call('HMGET', key, 'state', 'fingerprint', 'operation', 'note', 'rerun', 'owner', 'fence', 'attempt',
	'created', 'lease', 'completed', 'expires', 'status', 'header', 'tombstone', 'sealed', done and 'body' or 'none')
local rerun, fence, attempt = r[5] == '1', tonumber(r[7]), tonumber(r[8])
local created, lease, expires = tonumber(r[9]), tonumber(r[10]), tonumber(r[12])
if state == 'started' and r[6] == ARGV[3] then -- sent again: its answer was lost
	return { 1, now, fence, attempt, created, lease, expires }
end
local abandoned = state == 'started' and lease <= now
if state ~= 'held' and expires <= now and (state ~= 'started' or (abandoned and rerun)) then return begin(fence + 1, 1, now) end
if r[2] ~= ARGV[1] then return { 4, now, r } end
if done then return { 3, now, r } end
if state == 'held' then return { 5, now, r } end
if state == 'released' or (abandoned and rerun and ARGV[6] == '1') then return begin(fence + 1, attempt + 1, created) end
if abandoned then
	redis.call('HSET', key, 'state', 'held', 'note', ARGV[7])
	redis.call('PERSIST', key)
	r[1], r[4] = 'held', ARGV[7]
	return { 5, now, r }
end
return { 2, now, r }
