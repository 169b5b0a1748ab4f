#!/bin/sh
# Installs the clients of the zoo into .cache. What cannot be installed is named and left out.
cd "$(dirname "$0")" || exit 2
cache=$PWD/.cache
debian=$cache/debian
mkdir -p "$cache/bin"

have() { command -v "$1" >/dev/null; }
missing() { echo "not installed: $1"; }

# debian PACKAGE...: unpacks packages of Debian, and what they need, without installing them.
debian() {
	stamp=$debian/.$(echo "$*" | tr ' ' '+')
	[ -e "$stamp" ] && return
	have apt-get || return 1
	mkdir -p "$debian/debs/partial"
	apt-get -qq -y --download-only --no-install-recommends -o Dir::Cache::archives="$debian/debs" install "$@" >/dev/null 2>&1 || return 1
	for file in "$debian"/debs/*.deb; do
		[ -e "$file" ] || continue
		case ${file##*/} in perl_* | perl-base_* | perl-modules* | libperl5*) ;; *) dpkg -x "$file" "$debian" ;; esac
		rm "$file"
	done
	: >"$stamp"
}

# wrap NAME ENVIRONMENT... PROGRAM ARGUMENT...: makes a command of a program unpacked above.
wrap() {
	name=$1
	shift
	printf '#!/bin/sh\nexec env %s "$@"\n' "$*" >"$cache/bin/$name"
	chmod +x "$cache/bin/$name"
}

triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")
lib=$debian/usr/lib
libraries=LD_LIBRARY_PATH=$lib/$triplet

for tool in curl wget; do have $tool || missing $tool; done
if have aria2c; then
	ln -sf "$(command -v aria2c)" "$cache/bin/aria2c"
elif debian aria2; then
	wrap aria2c "$libraries" "$debian/usr/bin/aria2c"
else
	missing aria2c
fi

if have npm; then
	mkdir -p "$cache/node"
	cmp -s node/package-lock.json "$cache/node/node_modules/.installed" || {
		cp node/package.json node/package-lock.json "$cache/node/"
		(cd "$cache/node" && npm ci --no-audit --no-fund --ignore-scripts >/dev/null) &&
			cp node/package-lock.json "$cache/node/node_modules/.installed" || missing "node's packages"
	}
	ln -sfn ../.cache/node/node_modules node/node_modules
else
	missing "node's clients: there is no npm"
fi

if have python3; then
	[ -x "$cache/python/bin/python3" ] || python3 -m venv --system-site-packages "$cache/python"
	python=$cache/python/bin/python3
	wrap python "$libraries" "$python" # for what Debian's packages are linked with
	while read -r line; do
		name=${line%%==*}
		case $name in grpcio) module=grpc ;; *) module=$name ;; esac
		"$cache/bin/python" -c "import $module" 2>/dev/null && continue
		"$python" -m pip install -q --disable-pip-version-check "$line" >/dev/null 2>&1 && continue
		debian "python3-$name" && "$python" -c "import site, sys; open(site.getsitepackages()[0] + '/debian.pth', 'w').write(sys.argv[1])" "$lib/python3/dist-packages"
		"$cache/bin/python" -c "import $module" 2>/dev/null || missing "python: $line"
	done <python/requirements.txt
else
	missing "python's clients: there is no python3"
fi

if have go; then
	(cd go && GOWORK=off GOFLAGS=-modcacherw GOMODCACHE="$cache/gomod" nice go build -o "$cache/bin/zoo-go" .) || missing "go's clients"
else
	missing "go's clients: there is no go"
fi

if debian libwww-perl liblwp-protocol-https-perl libmojolicious-perl libfurl-perl; then
	wrap perl "PERL5LIB=$debian/usr/share/perl5:$(echo "$lib/$triplet"/perl5/*)" perl
elif have perl; then
	ln -sf "$(command -v perl)" "$cache/bin/perl"
else
	missing perl
fi

if debian ruby ruby-faraday ruby-excon ruby-httparty ruby-rest-client; then
	gems=$(for dir in "$debian"/usr/share/rubygems-integration/all/gems/*/lib; do printf ':%s' "$dir"; done)
	wrap ruby "$libraries" "RUBYLIB=$lib/ruby/vendor_ruby:$lib/ruby/3.1.0:$lib/$triplet/ruby/3.1.0:$lib/$triplet/ruby/vendor_ruby/3.1.0$gems" "$debian/usr/bin/ruby3.1" --disable-gems
elif have ruby; then
	ln -sf "$(command -v ruby)" "$cache/bin/ruby"
else
	missing ruby
fi

if debian php-cli php-curl php-guzzlehttp-guzzle; then
	wrap php "$libraries" "$debian/usr/bin/php8.2" -n -d "extension_dir=$(echo "$lib"/php/2*)" -d extension=curl -d "include_path=.:$debian/usr/share/php"
elif have php; then
	ln -sf "$(command -v php)" "$cache/bin/php"
else
	missing php
fi

if have javac; then
	debian libhttpclient5-java libhttpclient-java libokhttp-java || missing "java: Apache HttpClient, OkHttp"
	jars=$(for jar in httpclient5 httpcore5 httpcore5-h2 httpclient httpcore commons-logging commons-codec okhttp okio slf4j-api slf4j-nop; do
		for at in "$debian/usr/share/java" /usr/share/java; do [ -e "$at/$jar.jar" ] && printf ':%s' "$at/$jar.jar"; done
	done)
	mkdir -p "$cache/java"
	for source in java/*.java; do
		[ -e "$source" ] || continue
		javac -d "$cache/java" -sourcepath java -cp "$cache/java$jars" "$source" || missing "$source"
	done
	wrap java java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$cache/java$jars"
else
	missing "java's clients: there is no javac"
fi
