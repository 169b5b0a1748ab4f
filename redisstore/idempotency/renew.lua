-- ARGV  1 owner  2 fence  3 lease in us
-- Answers 1, or 0 where the claim is lost.
local state, rerun, lease, expires = claimed(ARGV[1], ARGV[2])
if not state then return 0 end
expires = expires + (now + ARGV[3] - lease)
redis.call('HSET', key, 'state', 'started', 'note', '', 'lease', int(now + ARGV[3]), 'expires', int(expires))
if rerun == '1' then ends(expires) end
return 1
