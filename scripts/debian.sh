# What scripts share that make a Debian: sourced, not run. Where apt and pip find packages here,
# they find them there.

say() { printf '\n== %s\n' "$*" >&2; }

need() { # PROGRAM PACKAGE: have it, from apt where it is not there
    if command -v "$1" >/dev/null; then return; fi
    if ! command -v apt-get >/dev/null; then
        echo "${0##*/}: $1 is missing, and no apt-get is here to install it; install $2, then try again." >&2
        exit 2
    fi
    say "Installing $2"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$2"; } >/dev/null || {
        echo "${0##*/}: $2 cannot be installed: \`apt-get update && apt-get install $2\` says why." >&2
        exit 2
    }
}

host_sources() { # SUITE: the host's files of apt sources that are about this Debian
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        if [ -f "$file" ] && grep -qE "^[^#]*[[:space:]]$1([[:space:]]|\$)" "$file"; then
            echo "$file"
        fi
    done
}

host_apt_options() { # proxies, retries and the like
    apt-config dump | grep -E '^Acquire::(https?|Check-|Retries|ForceIPv)' || true
}

write_pip_settings() { # FILE: every setting of the host's pip; prints the places on disk that it names
    python3 - "$1" <<'PYTHON'
import ast, configparser, pathlib, subprocess, sys

listed = subprocess.run(
    [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
).stdout
settings, places = configparser.RawConfigParser(), set()
for line in listed.splitlines():
    name, _, value = line.partition("=")
    section, _, key = name.rpartition(".")
    section = "global" if section == ":env:" else section
    if not settings.has_section(section):
        settings.add_section(section)
    text = ast.literal_eval(value)
    settings.set(section, key, text.replace("\n", "\n  "))
    for word in text.split():
        path = pathlib.Path(word.removeprefix("file://"))
        if path.is_absolute():
            # An index on disk has its files beside it.
            places.add(path.parent if word.startswith("file://") else path)
print(*sorted(places), sep="\n")
with open(sys.argv[1], "w") as file:
    settings.write(file)
PYTHON
}
