# The image of the origin and the edge: one static binary in an empty file system.
#
#   docker build -t headwater . && docker run -p 8080:8080 -v "$PWD/films:/films:ro" headwater serve /films
FROM rust:1.95-bookworm AS build
# A failed command before a pipe fails the build.
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /src
COPY . .
RUN scripts/install.sh run \
    && scripts/players.sh \
    && RUSTFLAGS="-C target-feature=+crt-static" \
       cargo build --release --locked --target "$(rustc -vV | sed -n 's/^host: //p')" \
    && mkdir -p /root-of-image/films /root-of-image/cache /root-of-image/tmp \
    && cp target/*-linux-gnu/release/headwater /root-of-image/headwater \
    && chown 65532:65532 /root-of-image/films /root-of-image/cache \
    && chmod 1777 /root-of-image/tmp

FROM scratch
COPY --from=build /root-of-image/ /
USER 65532:65532
ENV HEADWATER_LISTEN=0.0.0.0:8080
EXPOSE 8080
VOLUME ["/films", "/cache"]
HEALTHCHECK --interval=10s CMD ["/headwater", "health"]
ENTRYPOINT ["/headwater"]
CMD ["serve"]
