# unveil with its encoders and the review page, on a CPU.
#
#   docker build -t unveil .
#   docker run --rm -v "$PWD:/data" unveil discover known/ new/ --out run
#   docker run --rm -v "$PWD:/data" -p 8000:8000 unveil review run --host 0.0.0.0 --port 8000 --no-browser
FROM python:3.12-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir build==1.6.1 && python -m build --wheel --outdir /wheels

FROM python:3.12-slim-bookworm
COPY constraints.txt /wheels/constraints.txt
COPY --from=build /wheels /wheels
# The CPU build of torch first: the usual one brings gigabytes of CUDA.
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu torch==2.13.0 \
    && pip install --no-cache-dir -c /wheels/constraints.txt "unveil[images,text,review] @ file://$(ls /wheels/*.whl)" \
    && rm -r /wheels \
    && useradd --uid 1000 --create-home unveil \
    && mkdir /data /cache \
    && chown unveil /data /cache
USER 1000
WORKDIR /data
ENV UNVEIL_STORE=/cache/stages UNVEIL_DATA=/cache/data
EXPOSE 8000
ENTRYPOINT ["unveil"]
CMD ["--help"]
