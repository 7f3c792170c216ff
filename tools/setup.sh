#!/usr/bin/env bash
# Makes everything that `make demo` and `make test` need: .venv with the package, and the system's
# packages for headless rendering. Does nothing, in well under a second, when all of it is there.
#
#   tools/setup.sh [EXTRAS]     extras of pyproject.toml, comma-separated
#   PYTHON=python3.12           the interpreter a new .venv is made from
#   SKIP_APT=1                  never install Debian packages, only name the missing ones
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

EXTRAS=${1:-dev,torch,rl,report,control,rooms,ray,view}
VENV_PYTHON=.venv/bin/python
# The name holds all that decides what is installed. The path is part of it: a moved .venv is stale.
STAMP=.venv/.setup-$(cat pyproject.toml constraints.txt <(echo "$PWD $EXTRAS") | cksum | tr ' ' '-')

say() { echo "setup: $*" >&2; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if is_new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    say "no Python 3.11 or newer among: ${PYTHON:-python3 python3.13 python3.12 python3.11}." \
        "Install one, or name it: PYTHON=/path/to/python3 make test"
    return 1
}

install_package() {
    if [ -e "$STAMP" ]; then
        return
    fi
    if ! { is_new_enough "$VENV_PYTHON" && "$VENV_PYTHON" -m pip --version >/dev/null 2>&1; }; then
        local python
        python=$(find_python)
        say "making .venv with $("$python" --version)"
        "$python" -m venv --clear .venv ||
            { say "'$python -m venv' failed. On Debian: apt-get install python3-venv" && return 1; }
    fi
    say "installing interverse[$EXTRAS] and its tested dependencies (some minutes the first time)"
    "$VENV_PYTHON" -m pip install -qq --disable-pip-version-check \
        --constraint constraints.txt --editable ".[$EXTRAS]"
    touch "$STAMP"
}

has_library() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep "$1" >/dev/null; }

has_any_file() { compgen -G "$1" >/dev/null; }

missing_packages() {
    has_library 'libEGL\.so' || echo libegl1
    has_any_file '/usr/lib*/*/dri/*_dri.so' || has_any_file '/usr/lib*/dri/*_dri.so' ||
        has_library 'libEGL_nvidia\.so' || echo libgl1-mesa-dri
    has_library 'libOSMesa\.so' || echo libosmesa6
    has_any_file '/usr/share/fonts/*/*/*.[ot]tf' || echo fonts-dejavu-core
    command -v chromium chromium-browser google-chrome >/dev/null || echo chromium
    command -v ffmpeg >/dev/null || echo ffmpeg
}

apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        -o DPkg::Lock::Timeout=120 "$@" >/dev/null
}

install_system_packages() {
    local missing package tried=.venv/.apt-tried
    mapfile -t missing < <(missing_packages)
    # A package this release lacks must not cost an update at every call: each list is tried once.
    if [ ${#missing[@]} != 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
        [ -z "${SKIP_APT:-}" ] && [ "${missing[*]}" != "$(cat "$tried" 2>/dev/null)" ]; then
        say "installing Debian packages: ${missing[*]}"
        apt-get update -qq || true
        apt_install "${missing[@]}" ||
            for package in "${missing[@]}"; do apt_install "$package" || true; done
        mapfile -t missing < <(missing_packages)
        echo "${missing[*]}" >"$tried"
    fi
    if [ ${#missing[@]} != 0 ]; then
        say "missing for rendering, screenshots or video: ${missing[*]}" \
            "(Debian: apt-get update && apt-get install ${missing[*]}). Going on without."
    fi
}

install_package
if [ "$(uname)" = Linux ]; then
    install_system_packages
fi
