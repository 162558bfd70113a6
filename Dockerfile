# hud-mcp with a Chromium inside. Serves stdio by default:
#   docker run -i --rm hud-mcp
# and HTTP by flag:
#   docker run --rm -p 127.0.0.1:8000:8000 -e HUD_MCP_TOKEN=... hud-mcp serve --http 0.0.0.0:8000
# A shell needs the options that docs/container.md names.
FROM debian:bookworm-slim AS base

# The browser draws with a SwiftShader of its own, so what packages bring to draw with stays out.
RUN printf 'path-exclude=%s\n' \
        '/usr/lib/*/dri/*' '/usr/lib/*/libLLVM*' '/usr/lib/*/libz3.so*' \
        '/usr/lib/chromium/libVkLayer_khronos_validation.so' \
    > /etc/dpkg/dpkg.cfg.d/hud-mcp
# Playwright's Node.js is linked to libatomic, which a slim image lacks. Its Python is the
# distribution's: sandboxes see /usr, so it is theirs too.
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        bubblewrap ca-certificates chromium-headless-shell fonts-dejavu-core libatomic1 \
        python3 tini \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*

FROM base AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv
# What pip itself is made of stays in this stage.
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/hud-mcp
ARG EXTRAS=postgresql
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY hud_mcp hud_mcp
COPY environments environments
COPY scaffolds scaffolds
COPY taskset_data taskset_data
RUN /opt/pip/bin/pip --python /opt/hud-mcp/bin/python install --no-cache-dir \
        --disable-pip-version-check ".[$EXTRAS]"

FROM base
COPY --from=build /opt/hud-mcp /opt/hud-mcp
COPY hud_mcp/sandbox/seccomp.json /usr/share/hud-mcp/
# The folder is made before it becomes a volume: a volume takes its owner from what is there.
RUN useradd --create-home --uid 10001 hud && install -d -o hud -g hud -m 700 /var/lib/hud-mcp
USER hud
WORKDIR /home/hud
# Store, reports and logs lie in the package's folder of the place for data.
ENV PATH=/opt/hud-mcp/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    XDG_DATA_HOME=/var/lib
VOLUME /var/lib/hud-mcp
# The last label proves to the MCP registry whose image it is.
LABEL org.opencontainers.image.title="hud-mcp" \
    org.opencontainers.image.description="Environments for agents: held tasks, graded exactly once." \
    org.opencontainers.image.licenses="MIT" \
    io.modelcontextprotocol.server.name="io.github.hud-mcp/hud-mcp"
# A server on stdio is well as long as it runs; one over HTTP must answer.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-m", "hud_mcp.plugins.operate.health"]

# tini passes signals on and reaps what a browser leaves.
ENTRYPOINT ["tini", "--", "hud-mcp"]
CMD ["serve"]
