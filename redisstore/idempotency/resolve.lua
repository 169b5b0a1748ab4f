-- ARGV  1 note  2 fence, or 0 for any  3 with an answer, 0 or 1  4 status
--       5 header  6 body  7 tombstone  8 sealed, 0 or 1
-- Answers 1, 0 where there is no record, or -1 where it is not held.
local r = redis.call('HMGET', key, 'state', 'rerun', 'lease', 'expires', 'fence')
if not r[1] then return 0 end
local lease, expires = tonumber(r[3]), tonumber(r[4])
local abandoned = r[1] == 'started' and r[2] ~= '1' and lease <= now
if r[1] ~= 'held' and not abandoned then return -1 end
if ARGV[2] ~= '0' and ARGV[2] ~= r[5] then return -1 end
local till = now + expires - lease
-- Without its owner, whoever still runs has lost it.
redis.call('HSET', key, 'state', 'released', 'note', ARGV[1], 'owner', '', 'expires', int(till))
if ARGV[3] == '1' then
	redis.call('HSET', key, 'state', 'completed', 'completed', int(now),
		'status', ARGV[4], 'header', ARGV[5], 'body', ARGV[6], 'tombstone', ARGV[7], 'sealed', ARGV[8])
end
ends(till)
ended()
return 1
