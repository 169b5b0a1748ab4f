package probe

const keyHeader = "Idempotency-Key"

// judgePost: a POST is sent again with a key alone, the same one each time, and with the
// same bytes.
func judgePost(_ *known, runs []run) Verdict {
	r := &runs[0]
	if r.sends() < 2 {
		if why := stuck(r); why != "" {
			return notJudged("%s", why)
		}
		return holds("not sent again")
	}
	first := r.Arrivals[0]
	for _, a := range r.Arrivals {
		switch key := a.Header.Get(keyHeader); {
		case key == "":
			return fails("sent again without an idempotency key")
		case key != first.Header.Get(keyHeader):
			return fails("sent again with another idempotency key")
		case len(key) > 64:
			return fails("the key has %d characters: 64 are allowed", len(key))
		}
	}
	return sameBytes(r, "with the same key")
}

// sameBytes judges whether each request had the same body.
func sameBytes(r *run, with string) Verdict {
	for _, a := range r.Arrivals {
		if a.Body != r.Arrivals[0].Body {
			return fails("sent again with other bytes: %d instead of %d", a.Length, r.Arrivals[0].Length)
		}
	}
	return holds("sent again %s and the same %d bytes", with, r.Arrivals[0].Length)
}

func judgePut(k *known, runs []run) Verdict {
	if v := mustAgain(k, runs); v.Outcome != Holds {
		return v
	}
	return sameBytes(&runs[0], "as it was")
}

func judgeNewKey(_ *known, runs []run) Verdict {
	var keys []string
	for i := range runs {
		if why := stuck(&runs[i]); why != "" {
			return notJudged("%s", why)
		}
		keys = append(keys, runs[i].Arrivals[0].Header.Get(keyHeader))
	}
	switch {
	case keys[0] == "":
		return tells("it sends no key")
	case keys[0] == keys[1]:
		return fails("two calls had the same key")
	}
	return holds("each call had a key of its own")
}
