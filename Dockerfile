# hud-mcp with a Chromium inside. Serves stdio by default:
#   docker run -i --rm hud-mcp
# and HTTP by flag:
#   docker run --rm -p 127.0.0.1:8000:8000 -e HUD_MCP_TOKEN=... hud-mcp serve --http 0.0.0.0:8000
FROM python:3.11-slim-bookworm

# Playwright's Node.js is linked to libatomic, which a slim image lacks.
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        bubblewrap chromium-headless-shell fonts-dejavu-core libatomic1 tini \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY hud_mcp hud_mcp
COPY environments environments
COPY taskset_data taskset_data
RUN pip install --no-cache-dir . && rm -rf /app

RUN useradd --create-home --uid 10001 hud
USER hud
WORKDIR /home/hud
# The folder is made before it becomes a volume: a volume takes its owner from what is there.
RUN mkdir -p /home/hud/store
ENV PYTHONUNBUFFERED=1 HUD_MCP_STORE=/home/hud/store/store.sqlite3
VOLUME /home/hud/store

# tini passes signals on and reaps what a browser leaves.
ENTRYPOINT ["tini", "--", "hud-mcp"]
CMD ["serve"]
