#!/usr/bin/env bash
# Makes sure of everything that the tests run and that scripts/nodes.sh does not fetch. Go, Node, make and a
# C compiler have to be there. The servers and the browser are installed from Debian where they are missing,
# by root or by a user whose sudo asks for no password; anybody else is given the command to type. Costs a
# few milliseconds where nothing is missing. PAYMENTS_CHROMIUM and PAYMENTS_BITCOIND name programs of one's
# own, as in the tests. With "stores" it brings MariaDB too, which `make stores` alone runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go_least=1.26
node_least=20

has() { command -v "$1" >/dev/null; }
has_any() { for name; do if has "$name"; then return 0; fi; done; return 1; }

# older FOUND LEAST compares versions as 1.26 and 1.26.8.
older() {
  local -a found least
  IFS=. read -ra found <<<"$1"
  IFS=. read -ra least <<<"$2"
  ((found[0] < least[0] || (found[0] == least[0] && ${found[1]:-0} < ${least[1]:-0})))
}

# What cannot be installed here: sentences, and Debian's packages for those that have one.
absent=() packages=()

if ! has go; then
  absent+=("Go $go_least or newer (https://go.dev/doc/install)")
else
  version=$(go env GOVERSION 2>/dev/null) || version=
  version=${version#go}
  if older "${version:-0}" "$go_least"; then
    absent+=("Go $go_least or newer (https://go.dev/doc/install); this one is ${version:-too old to say}")
  fi
fi

if ! has node || ! has npm; then
  absent+=("Node $node_least or newer with npm (https://nodejs.org/en/download)")
else
  version=$(node --version) || version=
  version=${version#v}
  if older "${version:-0}" "$node_least"; then
    absent+=("Node $node_least or newer (https://nodejs.org/en/download); this one is ${version:-broken}")
  fi
fi

if ! has make; then
  absent+=("make")
  packages+=(make)
fi

# The race detector needs the C library's headers too, which Debian's compiler only recommends.
compiles() { "${CC:-gcc}" -E -include stdlib.h -x c /dev/null >/dev/null 2>&1; }
if ! { has "${CC:-gcc}" && [ -e /usr/include/stdlib.h ]; } && ! compiles; then
  absent+=("a C compiler with the C library's headers")
  packages+=(gcc libc6-dev)
fi

# What can be installed: the programs that internal/testing/testenv and the examples look for.
servers=()
if ! has redis-server; then
  servers+=(redis-server)
fi
if ! has initdb && ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
  servers+=(postgresql)
fi
if ! has pgbouncer && [ ! -x /usr/sbin/pgbouncer ]; then
  servers+=(pgbouncer)
fi
if [ "${1-}" = stores ] && { ! has mariadb-install-db || ! { has mariadbd || [ -x /usr/sbin/mariadbd ]; }; }; then
  servers+=(mariadb-server)
fi
# The receivers of webhooks in the examples.
if ! has python3; then
  servers+=(python3)
fi
if ! has php; then
  servers+=(php-cli)
fi
if [ -z "${PAYMENTS_CHROMIUM:-}" ] && ! has_any chromium chromium-browser google-chrome; then
  servers+=(chromium)
fi
if [ -z "${PAYMENTS_BITCOIND:-}" ] && [ ! -e .cache/bitcoind/version ] &&
  [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
  servers+=(debian-archive-keyring) # scripts/bitcoind.sh checks Debian's signatures with it
fi
packages+=("${servers[@]}")

if ((${#absent[@]} + ${#packages[@]} == 0)); then
  exit
fi

as_root=() type_sudo="sudo " root=yes
if [ "$(id -u)" = 0 ]; then
  type_sudo=
elif has sudo && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  root=no
fi
command="${type_sudo}apt-get update && ${type_sudo}apt-get install -y --no-install-recommends ${packages[*]}"

if ((${#absent[@]} > 0)); then
  printf 'setup: missing: %s\n' "${absent[@]}" >&2
  if ((${#packages[@]} > 0)); then
    echo "setup: on Debian type: $command" >&2
  fi
  exit 1
fi

if ! has apt-get; then
  echo "setup: missing: ${packages[*]} (Debian's names). There is no apt-get to install them." >&2
  exit 1
fi
if [ $root = no ]; then
  echo "setup: the tests need ${packages[*]}, and this user has no sudo without a password." >&2
  echo "Type: $command" >&2
  exit 1
fi

echo "setup: installing ${packages[*]}" >&2
"${as_root[@]}" apt-get -qq update >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -qq install -y --no-install-recommends "${packages[@]}" >&2
