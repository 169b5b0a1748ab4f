package smuggling

var sections = []section{
	{title: "Framing of requests", probes: framing},
}
