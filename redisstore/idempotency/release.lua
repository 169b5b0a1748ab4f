-- ARGV  1 owner  2 fence
-- Answers 1, or 0 where the claim is lost.
local state, _, _, expires = claimed(ARGV[1], ARGV[2], 'released')
if not state then return 0 end
redis.call('HSET', key, 'state', 'released', 'note', '')
ends(expires)
ended()
return 1
