#!/bin/sh
# gateway.sh URL METHOD BODY CA: makes one call, with a key, through a gateway of its own.
# FORBEAR is the program.
dir=$(mktemp -d)
mkfifo "$dir/log"
case $1 in https:*) tls=", tls: {ca: \"$4\"}" ;; *) tls= ;; esac
cat >"$dir/policy.yaml" <<YAML
service: probe
dependencies:
  server: {url: "$1", owner: probe$tls}
gateway:
  listen: 127.0.0.1:0
  routes:
    - {prefix: /, dependency: server}
YAML
"$FORBEAR" serve --config "$dir/policy.yaml" --admin off --no-delivery >"$dir/log" 2>&1 &
gateway=$!
trap 'kill -9 $gateway; rm -r "$dir"' EXIT
exec 3<"$dir/log"
read -r line <&3 || exit 2
cat <&3 >/dev/null &
curl -sf -o "$dir/body" -X "$2" -d "$3" -A forbear-gateway -H "Authorization: Bearer secret" -H "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)" "${line##* }/" &
call=$!
trap 'kill $call; wait $gateway' TERM # the gateway outlives its client, to show what it does then
wait $call
