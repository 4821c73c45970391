# mcpx alone: for upstreams with a url. Dockerfile.full has node and uv too.
FROM golang:1.26 AS build
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X mcpx/internal/app.version=$VERSION" -o /out/ ./cmd/mcpx \
    && ln -s mcpx /out/mcpx-sse

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ /usr/local/bin/
EXPOSE 8000
ENTRYPOINT ["/usr/local/bin/mcpx-sse"]
# Another address than loopback needs a token: MCPX_TOKEN.
CMD ["/etc/mcpx/config.json", "--host", "0.0.0.0"]
