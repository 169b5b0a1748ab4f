-- Deletes the record if it has expired. Answers the number deleted.
local r = redis.call('HMGET', key, 'state', 'rerun', 'expires')
if not r[1] or r[1] == 'held' or (r[1] == 'started' and r[2] ~= '1') or tonumber(r[3]) > now then return 0 end
return redis.call('DEL', key)
