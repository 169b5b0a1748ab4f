package reference

// Variables are the environment variables that forbear reads, with their meaning. A
// test holds the list to the sources.
var Variables = [][2]string{
	{"FORBEAR_ADMIN_TOKEN", "the token of the admin endpoint, in place of `--admin-token-file`"},
	{"FORBEAR_API_TOKEN", "the token of the API of deliveries, in place of `--api-token-file`; for `serve`, and for the commands that call it"},
	{"FORBEAR_DATABASE", "where deliveries, dead letters and idempotency records are kept, in place of `--database`: an SQLite file or a `postgres://` URL"},
	{"FORBEAR_ENCRYPTION_KEY_FILE", "files with the keys that payloads and secrets are encrypted under, separated as in `PATH`, in place of `--encryption-key-file`"},
	{"FORBEAR_FLEET_BUDGET", "the `redis://` URL of the budget that a fleet shares, in place of `--fleet-budget`"},
	{"FORBEAR_HANDOVER", "set by `forbear serve` itself for the process that it hands its sockets over to"},
	{"FORBEAR_LINT_CONFIG", "the settings of `forbear-vet`, where they are not beside the module"},
	{"FORBEAR_METRICS_TOKEN", "a token that opens `/metrics` and nothing else, in place of `--metrics-token-file`"},
	{"FORBEAR_SECRET_NAME", "the secret called NAME, for endpoints that refer to it as `env:NAME`"},
}

// elsewhere are the variables of others that forbear obeys.
var elsewhere = [][2]string{
	{"GOGC, GOMEMLIMIT", "Go's own settings of memory; without `GOGC`, and with 96 MiB or more, `forbear serve` collects garbage less often"},
	{"LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES", "sockets that systemd passes"},
	{"NOTIFY_SOCKET", "where systemd is told that the gateway is ready"},
	{"OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_...", "where `forbear serve` sends metrics and traces, as OpenTelemetry defines; `OTEL_SDK_DISABLED=true` switches them off"},
	{"WATCHDOG_USEC, WATCHDOG_PID", "how often systemd wants to hear that the gateway responds"},
}

// Environment returns the page of the environment variables.
func Environment() string {
	p := begin("Environment", "`cmd/forbear/internal/testkit/reference/environment.go`")
	p.line("A flag of [a command](commands.md) wins over the variable. In a policy file, `{env: NAME}` reads any variable.\n")
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
