-- What all scripts of the idempotency records begin with. A record is one hash,
-- so that each script touches one key, in one slot of a cluster:
--
--   state        started, completed, released, held
--   fingerprint  operation  note
--   rerun        1: an abandoned run may be repeated
--   owner        of the claim; fence and attempt are its numbers
--   lease created completed expires    in microseconds of the server's clock
--   status header body tombstone       the answer of a completed record
--   sealed       1: header and body are encrypted
--
-- What may never be forgotten (held, or started and not to be repeated) has no
-- time to live; everything else has, until its expiry and the grace beyond it,
-- in which only the fence counts.
local key = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local grace = 3600000 -- ms, an hour; known to the Go side

local function int(n) return string.format('%.0f', n) end

-- ends gives the record its time to live.
local function ends(expires)
	redis.call('PEXPIRE', key, int(math.max(math.ceil((expires - now) / 1000), 0) + grace))
end

-- claimed returns the state, the rerun mark, the lease and the expiry of the
-- record if it is under the claim of that owner and fence; a fence of 0 stands
-- for any. same is a state in which the record is still the claim's own: a
-- script that is sent again, because its answer was lost, has done its work.
local function claimed(owner, fence, same)
	local r = redis.call('HMGET', key, 'state', 'owner', 'fence', 'rerun', 'lease', 'expires')
	if not r[1] or r[2] ~= owner or (fence ~= '0' and r[3] ~= fence) then return nil end
	if r[1] ~= 'started' and r[1] ~= 'held' and r[1] ~= same then return nil end
	return r[1], r[4], tonumber(r[5]), tonumber(r[6])
end

-- ended lets those know who wait for the end of the run, by the record's name. A
-- user of the server who may not publish still ends runs: others poll.
local function ended() redis.pcall('PUBLISH', key, '') end
