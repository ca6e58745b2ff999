# Build, with the version that rust-toolchain.toml names (the file itself would fetch lints that a build
# doesn't need). Dependencies are cached apart from the source.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src tests && echo 'fn main() {}' > src/main.rs && touch src/lib.rs tests/main.rs \
    && cargo build --release --locked && rm -r src tests
COPY . .
RUN touch src/main.rs src/lib.rs && cargo build --release --locked --bin handback

# Run: the binary, certificates for databases over TLS, nothing else.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin handback \
    && install -d -o handback -g handback /data
COPY --from=build /src/target/release/handback /usr/local/bin/handback
USER handback
WORKDIR /data
VOLUME /data
ENV DATABASE_URL=sqlite:///data/handback.db \
    HANDBACK_SERVER__LISTEN=0.0.0.0:8080 \
    HANDBACK_SERVER__PUBLIC_URL=http://localhost:8080
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["handback", "health"]
ENTRYPOINT ["handback"]
CMD ["serve"]
