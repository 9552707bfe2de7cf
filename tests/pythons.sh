#!/usr/bin/env bash
# Passes the README's test command on other Pythons: each in a Debian that has it, in a folder of its own. Not a part of `.ci/run`.
#
#     tests/pythons.sh                            3.13 of trixie, 3.14 and 3.15 of forky, with all that `pip install -e '.[test]'` gives
#     tests/pythons.sh 3.14 3.15                  these alone
#     tests/pythons.sh 3.14t                      one without the interpreter's lock, built from Debian's source, or from that in
#                                                 SOURCE=python3.14_3.14.4.orig.tar.xz: 10 minutes more
#     tests/pythons.sh 3.15 -- -n 2 tests/core    what follows the `--` goes to pytest
#
# It needs Debian, root, and `debootstrap`; each Python takes some 4 GB in $PYTHONS, by default the folder minikeras-pythons
# beside other temporary files. What is there stays for the next time; to begin afresh, delete a folder. Mirror, proxies,
# certificates and settings of apt and pip are this machine's. /proc, /dev and /sys are mounted for this program alone, and go
# with it.
#
# A package of the extra `test` without a wheel for a Python is left out, and a line says which; its tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${MOUNTS_OF_ITS_OWN:-}" ]; then
    MOUNTS_OF_ITS_OWN=1 exec unshare --mount --propagation private bash "$PWD/tests/pythons.sh" "$@"
fi

folder=${PYTHONS:-${TMPDIR:-/tmp}/minikeras-pythons}
versions=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do versions+=("$1"); shift; done
[ $# -eq 0 ] || shift
[ ${#versions[@]} -gt 0 ] || versions=(3.13 3.14 3.15)
mirror=$(sed -n 's/^URIs: *\([^ ]*\/debian\)\/*$/\1/p' /etc/apt/sources.list.d/debian.sources 2> /dev/null | head -1)
mirror=${mirror:-http://deb.debian.org/debian}

suite() {
    case $1 in
        3.13) echo trixie ;;
        3.14 | 3.14t | 3.15) echo forky ;;
        *) echo "no Debian for Python $1: this knows 3.13, 3.14, 3.14t and 3.15" >&2; exit 2 ;;
    esac
}

within() { # a command in the folder of a Debian
    local root=$1
    shift
    env -u PYTHONPATH -u TMPDIR -u PIP_FIND_LINKS LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 chroot "$root" "$@"
}

a_debian() { # in $folder/trixie, once
    local name=$1 root=$folder/$1
    if [ ! -e "$root/made" ]; then
        echo "== Debian $name"
        command -v debootstrap > /dev/null || { echo "apt-get install debootstrap" >&2; exit 1; }
        rm -rf --one-file-system "$root"
        debootstrap --variant=minbase --include=ca-certificates,g++,git "$name" "$root" "$mirror" \
            /usr/share/debootstrap/scripts/sid > "$folder/$name.log" 2>&1 || { tail -3 "$folder/$name.log" >&2; exit 1; }
        # what this machine says about its network
        cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
        grep -hiE '^ *(Acquire::.*(Proxy|Check|Retries|Verify)|APT::Get)' /etc/apt/apt.conf.d/* > "$root/etc/apt/apt.conf.d/90machine" || true
        for file in /etc/pip.conf /etc/resolv.conf /etc/hosts; do
            [ ! -e $file ] || cp -L $file "$root$file"
        done
        within "$root" update-ca-certificates > /dev/null 2>&1
        within "$root" apt-get -qq update
        touch "$root/made"
    fi
    mount --types proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys" # MPI asks it for networks
}

a_python() { # python3.13 on the path of a Debian, once
    local version=$1 root=$2
    within "$root" sh -c "command -v python$version" > /dev/null && return
    echo "== Python $version"
    if [ "$version" = "${version%t}" ]; then
        within "$root" apt-get -qq install --no-install-recommends "python$version-venv" "python$version-dev" > /dev/null
        return
    fi
    mkdir -p "$root/usr/src/python"
    if [ -n "${SOURCE:-}" ]; then
        cp "$SOURCE" "$root/usr/src/python/source.orig.tar.xz"
    else
        sed 's/^deb /deb-src /' "$root/etc/apt/sources.list" > "$root/etc/apt/sources.list.d/source.list"
        within "$root" bash -c "apt-get -qq update && cd /usr/src/python && apt-get -qq source --download-only python${version%t}" \
            > "$folder/python$version.log" 2>&1 || { tail -3 "$folder/python$version.log" >&2; exit 1; }
    fi
    within "$root" bash -euo pipefail -c "
        apt-get -qq install --no-install-recommends make pkgconf xz-utils zlib1g-dev libssl-dev libffi-dev libsqlite3-dev libbz2-dev \
            liblzma-dev
        cd /usr/src/python
        mkdir -p python && tar -xf *.orig.tar.xz -C python --strip-components=1 && cd python
        ./configure --disable-gil --prefix=/usr/local
        make -s -j\"\$(nproc)\"
        make -s altinstall
        rm /usr/local/bin/python${version%t} # Debian's own goes by this name
        " > "$folder/python$version.log" 2>&1 || { tail -3 "$folder/python$version.log" >&2; exit 1; }
}

an_environment() { # as the README says, in a copy of the files; what has no wheel is left out
    local version=$1 root=$2 place=$3
    mkdir -p "$root$place"
    find "$root$place" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        [ ! -e "$file" ] || printf '%s\0' "$file"
    done | tar --null --files-from=- -cf - | tar -xf - -C "$root$place"
    within "$root" "python$version" -m venv "$place/.venv"
    local install="cd $place && .venv/bin/python -m pip install -q --prefer-binary --only-binary=:all:"
    echo "== packages"
    within "$root" bash -c "$install -e '.[test]'" > "$folder/packages-$version.log" 2>&1 && return
    within "$root" bash -c "$install -e ."
    within "$root" "$place/.venv/bin/python" -c '
import sys, tomllib
with open(sys.argv[1], "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"]["test"], sep="\n")' "$place/pyproject.toml" \
        | while IFS= read -r package; do
            within "$root" bash -c "$install \"$package\"" < /dev/null > "$folder/packages-$version.log" 2>&1 \
                || echo "   left out: $package ($(grep -m1 -i error "$folder/packages-$version.log" | cut -c 1-100))"
        done
}

mkdir -p "$folder"
failed=()
for version in "${versions[@]}"; do
    root=$folder/$(suite "$version")
    place=/minikeras-$version
    mountpoint -q "$root/proc" || a_debian "$(basename "$root")"
    a_python "$version" "$root"
    an_environment "$version" "$root" "$place"
    command=$(grep -m1 'python -m pytest$' README.md)
    echo "== Python $version: $command $*"
    within "$root" bash -c "cd $place && export MINIKERAS_OFFLINE=1 && $command \"\$@\"" pytest "$@" || failed+=("$version")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
echo "all passed: ${versions[*]}"
