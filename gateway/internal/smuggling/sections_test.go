package smuggling

var sections = []section{
	{title: "Content framed twice", probes: framed},
	{title: "Content-Length", probes: sized},
	{title: "Transfer-Encoding", probes: coded},
	{title: "Chunks", probes: chunks},
	{title: "Trailer fields of requests", probes: trailers},
	{title: "Field lines", probes: heads},
	{title: "Request lines", probes: requestLines},
	{title: "Paths and queries", probes: targets},
	{title: "Hosts and the absolute form", probes: hosts},
	{title: "Connections, upgrades and what the gateway adds", probes: hops},
	{title: "Responses: status lines and fields", probes: statuses, once: true},
	{title: "Responses: framing", probes: bodies, once: true},
	{title: "Responses: interim ones, and 101", probes: interim, once: true},
}
