#!/bin/sh
# run.sh FORBEAR [NAME...]: probes the clients of the zoo, one after the other.
[ $# -gt 0 ] || { echo "usage: run.sh FORBEAR [NAME...]" >&2; exit 2; }
FORBEAR=$(realpath "$1")
export FORBEAR
shift
names=" $* "
cd "$(dirname "$0")" || exit 2
reports=.cache/reports
mkdir -p "$reports"

tail -n +2 zoo.tsv | while IFS='	' read -r name language version command; do
	case $names in "  " | *" $name "*) ;; *) continue ;; esac
	if ! v=$(sh -c "$version" 2>/dev/null </dev/null | head -n 1) || [ -z "$v" ]; then
		echo "skip $name: it is not installed"
		continue
	fi
	eval "set -- $command"
	grpc=
	case $command in *'{target}'*) grpc=--grpc ;; esac
	"$FORBEAR" probe $grpc -o json -- "$@" >"$reports/$name.tmp" 2>"$reports/$name.err" </dev/null
	code=$?
	if [ -s "$reports/$name.tmp" ]; then
		mv "$reports/$name.tmp" "$reports/$name.json"
		echo "$v" >"$reports/$name.version"
		echo "$name ($language, $v): exit $code"
	else
		echo "$name ($language, $v): no report: $(tail -n 1 "$reports/$name.err")"
	fi
done
