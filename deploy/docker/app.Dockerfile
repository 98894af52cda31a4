# The application of compose.yaml: docker build -f deploy/docker/app.Dockerfile .
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY deploy/ .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o /app ./app

FROM scratch
COPY --from=build /app /app
# the group that may connect to the Unix socket of rlserver
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/app"]
