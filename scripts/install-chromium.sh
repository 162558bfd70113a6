#!/bin/sh
# Make sure that there is a Chromium, and do nothing where there is one: an installed one is
# found first; then the system's package manager is asked; then Playwright downloads its own.
# Usage: install-chromium.sh PYTHON, an interpreter that has hud-mcp.
set -eu
python=$1

found() {
    "$python" - >/dev/null 2>&1 <<'PYTHON'
from hud_mcp.worlds.browser.chromium import find_chromium

if find_chromium() is None:
    # Only Playwright's own download is left: it is there if it can be launched.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        playwright.chromium.launch().close()
PYTHON
}

if found; then exit 0; fi
echo "No Chromium is installed; installing one." >&2

if command -v apt-get >/dev/null 2>&1; then
    as_root=""
    if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
    if $as_root true 2>/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        $as_root apt-get update -qq || true
        # The headless shell opens pages twice as fast; not every distribution has it apart.
        $as_root apt-get install -y -qq --no-install-recommends \
            chromium-headless-shell fonts-dejavu-core >/dev/null 2>&1 ||
            $as_root apt-get install -y -qq --no-install-recommends \
                chromium fonts-dejavu-core >/dev/null 2>&1 || true
    fi
fi
if found; then exit 0; fi

"$python" -m playwright install --with-deps chromium-headless-shell >&2 ||
    "$python" -m playwright install chromium-headless-shell >&2 || true
if found; then exit 0; fi

echo "Could not install a Chromium. Install one (Debian: apt-get install chromium; macOS: brew" >&2
echo "install --cask chromium), or name an executable in HUD_MCP_CHROMIUM, then try again." >&2
exit 1
