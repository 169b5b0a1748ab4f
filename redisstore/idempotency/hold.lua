-- ARGV  1 owner  2 fence  3 why
-- Answers 1, or 0 where the claim is lost.
if not claimed(ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', key, 'state', 'held', 'note', ARGV[3])
redis.call('PERSIST', key)
ended()
return 1
