# apbjudge with the versions of libraries that the action installs: docker build -t apbjudge .
# Files come in and go out through a volume:
#   docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" apbjudge grade plans.jsonl
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY .ci/constraints.txt /tmp/constraints.txt
RUN pip install --no-cache-dir --require-hashes --requirement /tmp/constraints.txt \
    && rm /tmp/constraints.txt
COPY --from=build /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps /tmp/wheels/*.whl \
    && useradd --uid 1000 --create-home apbjudge
# Replies, states and the font list of matplotlib; HOME is not writable for another --user.
ENV APBJUDGE_CACHE_DIR=/data/.apbjudge/cache XDG_STATE_HOME=/data/.apbjudge/state MPLCONFIGDIR=/tmp/matplotlib
USER 1000
WORKDIR /data
ENTRYPOINT ["apbjudge"]
