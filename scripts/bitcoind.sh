#!/usr/bin/env bash
# Fetches the Bitcoin node that the tests run (bitcoin-knots, a derivative of Bitcoin Core) from Debian's unstable suite into
# .cache/bitcoind and prints its version. Nothing is installed on the system: the packages are unpacked with the libraries they need,
# and bin/bitcoind runs through their own dynamic loader. apt checks the archive's signature with Debian's key ring, and every
# package against the signed index. The mirror is the one that this machine's apt is configured with; one that is behind will do,
# because an older node of the suite serves the tests as well.
# Safe to call at any time and from several processes at once: a node that is there already costs one test of a file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

least=29   # the oldest major version that the tests are written for
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() { echo "bitcoind: $*" >&2; exit 1; }

mkdir -p .cache
exec 9>.cache/bitcoind.lock
flock 9 # until this script ends; the system lets go of it if the script is killed

target=$PWD/.cache/bitcoind
if [ -e "$target/version" ]; then
  cat "$target/version"
  exit
fi

[ "$(uname -sm)" = "Linux x86_64" ] || fail "no package is unpacked on $(uname -sm); set PAYMENTS_BITCOIND to the path of a bitcoind"
for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || fail "$tool is missing (this is not Debian); set PAYMENTS_BITCOIND to the path of a bitcoind"
done
[ -r "$keyring" ] || fail "$keyring is missing: install debian-archive-keyring"
# The bare word: a proxy or another scheme in front of it is none of our business.
mirror=$(apt-get indextargets --format '$(REPO_URI)' | sort -u | grep -E '/debian/?$' | head -1) || true
[ -n "$mirror" ] || fail "apt is configured with no Debian mirror"

echo "bitcoind: fetching bitcoin-knots into ${target#"$PWD"/}" >&2
rm -rf "$target"
mkdir -p "$target"/{apt/lists/partial,apt/cache/archives/partial,apt/parts,debs,root,bin}
: >"$target/apt/status"
echo "deb [signed-by=$keyring] ${mirror%/}/ sid main" >"$target/apt/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$target/apt/sources.list" -o "Dir::Etc::sourceparts=$target/apt/parts"
  -o "Dir::State::lists=$target/apt/lists" -o "Dir::Cache=$target/apt/cache" -o "Dir::State::status=$target/apt/status"
  -o APT::Get::AllowUnauthenticated=false -o Acquire::AllowInsecureRepositories=false -o Acquire::Languages=none
  -o Acquire::Check-Valid-Until=false)
[ "$(id -u)" != 0 ] || apt+=(-o APT::Sandbox::User=root)
"${apt[@]}" update >&2 9>&-

# With an empty status file the simulation names everything down to the C library; the loader needs the libraries alone.
packages=$("${apt[@]}" --no-install-recommends install -s bitcoin-knots | awk '/^Inst/ {print $2}' | grep -E '^(bitcoin-knots|lib|zlib)')
(cd "$target/debs" && "${apt[@]}" download $packages >&2 9>&-)
for deb in "$target"/debs/*.deb; do
  dpkg-deb -x "$deb" "$target/root"
done
rm -rf "$target/apt" "$target/debs"

binary=$(find "$target/root" -name bitcoind -type f -perm -100 | head -1)
loader=$(find "$target/root" -name 'ld-linux-x86-64.so.2' | head -1)
[ -n "$binary" ] && [ -n "$loader" ] || fail "the packages hold no bitcoind or no dynamic loader"
printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$target/root/usr/lib/x86_64-linux-gnu" "$binary" >"$target/bin/bitcoind"
chmod +x "$target/bin/bitcoind"

version=$("$target/bin/bitcoind" --version | head -1) || fail "the fetched bitcoind does not run"
major=$(sed -nE 's/.* v([0-9]+)\..*/\1/p' <<<"$version")
[ "${major:-0}" -ge "$least" ] || fail "the mirror has \"$version\"; the tests need version $least or newer"
# Last, so that an interrupted fetch is never taken for a whole one.
echo "$version" >"$target/version"
cat "$target/version"
