-- ARGV  1 note  2 with an answer, 0 or 1  3 status  4 header  5 body
--       6 tombstone  7 sealed, 0 or 1
-- Answers 1, 0 where there is no record, or -1 where it is not held.
local r = redis.call('HMGET', key, 'state', 'rerun', 'lease', 'expires')
if not r[1] then return 0 end
local lease, expires = tonumber(r[3]), tonumber(r[4])
local abandoned = r[1] == 'started' and r[2] ~= '1' and lease <= now
if r[1] ~= 'held' and not abandoned then return -1 end
local till = now + expires - lease
-- Without its owner, whoever still runs has lost it.
redis.call('HSET', key, 'state', 'released', 'note', ARGV[1], 'owner', '', 'expires', int(till))
if ARGV[2] == '1' then
	redis.call('HSET', key, 'state', 'completed', 'completed', int(now),
		'status', ARGV[3], 'header', ARGV[4], 'body', ARGV[5], 'tombstone', ARGV[6], 'sealed', ARGV[7])
end
ends(till)
return 1
