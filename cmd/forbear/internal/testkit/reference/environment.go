package reference

// Variables are the environment variables that forbear reads, with their meaning. A
// test holds the list to the sources.
var Variables = [][2]string{
	{"FORBEAR_ADMIN_TOKEN", "token of the admin endpoint, instead of `--admin-token-file`"},
	{"FORBEAR_API_TOKEN", "token of the delivery API, instead of `--api-token-file`; also for the commands that call it"},
	{"FORBEAR_DATABASE", "SQLite file or `postgres://` URL, instead of `--database`"},
	{"FORBEAR_ENCRYPTION_KEY_FILE", "files with encryption keys, separated as in `PATH`, instead of `--encryption-key-file`"},
	{"FORBEAR_FLEET_BUDGET", "`redis://` URL of the shared retry budget, instead of `--fleet-budget`"},
	{"FORBEAR_HANDOVER", "set by `forbear serve` for the process that takes over its sockets"},
	{"FORBEAR_LINT_CONFIG", "settings file of `forbear-vet`"},
	{"FORBEAR_METRICS_TOKEN", "token that opens only `/metrics`, instead of `--metrics-token-file`"},
	{"FORBEAR_SECRET_NAME", "the secret that endpoints refer to as `env:NAME`"},
}

// elsewhere are the variables of others that forbear obeys.
var elsewhere = [][2]string{
	{"GOGC, GOMEMLIMIT", "memory settings of Go; without `GOGC`, and with at least 96 MiB, `forbear serve` collects garbage less often; a quarter of `GOMEMLIMIT` is for request bodies (`body_limit`)"},
	{"LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES", "sockets that systemd passes"},
	{"NOTIFY_SOCKET", "socket for readiness notifications to systemd"},
	{"OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_...", "OpenTelemetry export of metrics and traces; `OTEL_SDK_DISABLED=true` switches it off"},
	{"WATCHDOG_USEC, WATCHDOG_PID", "interval of the systemd watchdog"},
}

// Environment returns the page of the environment variables.
func Environment() string {
	p := begin("Environment", "`cmd/forbear/internal/testkit/reference/environment.go`")
	p.line("A flag of [a command](commands.md) overrides the variable. In a policy file, `{env: NAME}` reads any variable.\n")
	rows := func(list [][2]string) (all [][]string) {
		for _, v := range list {
			all = append(all, []string{tick(v[0]), v[1]})
		}
		return all
	}
	p.table([]string{"variable", "meaning"}, rows(Variables))
	p.heading(2, "Of other programs")
	p.table([]string{"variable", "meaning"}, rows(elsewhere))
	return p.String()
}
