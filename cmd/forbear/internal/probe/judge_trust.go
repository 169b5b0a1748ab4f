package probe

import (
	"cmp"
	"slices"
)

// judge401: the same credentials are refused again.
func judge401(_ *known, runs []run) Verdict {
	r := &runs[0]
	if why := stuck(r); why != "" {
		return notJudged("%s", why)
	}
	if r.sends() == 1 {
		return holds("not sent again")
	}
	first, second := r.Arrivals[0].Header.Get("Authorization"), r.Arrivals[1].Header.Get("Authorization")
	switch {
	case second == first:
		return fails("sent again with the same credentials")
	case second == "":
		return fails("sent again without credentials")
	case r.sends() > 2:
		return fails("sent %d times with new credentials", r.sends())
	}
	return holds("sent once more, with new credentials")
}

func judgeRedirect(_ *known, runs []run) Verdict {
	r := &runs[0]
	switch {
	case r.sends() == 0:
		return notJudged("%s", stuck(r))
	case len(r.Beyond) == 0:
		return holds("not followed")
	case r.Beyond[0].Header.Get("Authorization") != "" || r.Beyond[0].Header.Get("Cookie") != "":
		return fails("the credentials went to the other host")
	case r.Arrivals[0].Header.Get("Authorization") == "" && r.Arrivals[0].Header.Get("Cookie") == "":
		return notJudged("it sends no credentials that could follow")
	}
	return holds("followed without credentials")
}

func judgeTrusted(k *known, runs []run) Verdict {
	r := &runs[0]
	if k.trusts = r.sends() > 0; k.trusts {
		return tells("a certificate of the probe's authority is trusted")
	}
	if len(r.Conns) == 0 {
		return notJudged("it never called")
	}
	return notJudged("it does not trust the probe's authority: pass it the file {ca}")
}

// judgeCertificate counts how often the client has met a certificate before it ended, in the
// worst of its runs. A channel of gRPC that is refused one dials again by itself, a second
// later: a call that has failed at once is over by then, and so is the client, which makes
// one call. Where a call goes on, by retries or because it waits for the channel, the
// certificate is met again on its behalf. Retries that find no connection meet none.
func judgeCertificate(k *known, runs []run) Verdict {
	r := new(slices.MaxFunc(runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.sends(), b.sends()), cmp.Compare(len(a.Conns), len(b.Conns)))
	}))
	switch {
	case r.sends() > 0:
		return fails("the request was sent over it")
	case !k.trusts:
		return notJudged("it does not trust the probe's authority: pass it the file {ca}")
	case len(r.Conns) > 1:
		return fails("tried %d times", len(r.Conns))
	case len(r.Conns) == 0:
		return notJudged("it never called")
	case r.watched():
		return notJudged("it neither ended nor came again within %s", short(r.Took))
	}
	return holds("tried once")
}
