-- ARGV  1 owner  2 fence  3 retention in us  4 status  5 header  6 body
--       7 tombstone  8 sealed, 0 or 1
-- Answers 1, or 0 where the claim is lost.
local state = claimed(ARGV[1], ARGV[2], 'completed')
if not state then return 0 end
if state == 'completed' then
	local a = redis.call('HMGET', key, 'status', 'body')
	return a[1] == ARGV[4] and a[2] == ARGV[6] and 1 or 0
end
local expires = now + ARGV[3]
redis.call('HSET', key, 'state', 'completed', 'completed', int(now), 'expires', int(expires), 'status', ARGV[4], 'header', ARGV[5], 'body', ARGV[6])
if ARGV[7] ~= '' then redis.call('HSET', key, 'tombstone', ARGV[7]) end
if ARGV[8] == '1' then redis.call('HSET', key, 'sealed', '1') end
if state == 'held' then redis.call('HDEL', key, 'note') end
ends(expires)
ended()
return 1
