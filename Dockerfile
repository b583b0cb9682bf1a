# One image for every process; docker-compose.yml and deploy/ say which command each runs.

FROM python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b AS frontend
WORKDIR /kueueweb
COPY requirements/demo.lock requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes --requirement requirements/demo.lock
COPY scripts/frontend.py scripts/
COPY frontend frontend
COPY docs/examples docs/examples
RUN python scripts/frontend.py build

FROM python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 STATIC_ROOT=/kueueweb/static LOG_FORMAT=json
WORKDIR /kueueweb
COPY requirements/runtime.lock requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes --requirement requirements/runtime.lock \
    && useradd --system --uid 10001 --home-dir /kueueweb kueueweb
COPY manage.py ./
COPY kueueweb kueueweb
COPY deploy/kubernetes kueueweb/kubernetes
COPY foundation foundation
COPY kinds kinds
COPY accounts accounts
COPY queues queues
COPY gpus gpus
COPY scheduler scheduler
COPY history history
COPY notifications notifications
COPY studio studio
COPY clusters clusters
COPY simulation simulation
COPY scheduling scheduling
COPY --from=frontend /kueueweb/frontend/dist frontend/dist
# At run time nothing can be written there, bytecode included.
RUN python -m compileall -q . && python manage.py collectstatic --no-input --verbosity 0
USER 10001
EXPOSE 8000
CMD ["python", "manage.py", "serve", "--host", "0.0.0.0", "--port", "8000"]
