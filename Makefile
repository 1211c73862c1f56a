# Everything is set up inside this directory (.venv, var, caches). Needed: Python 3.11 or newer with venv,
# GNU make, and a package index.

PYTHON ?= python3
BIN := .venv/bin

# Nothing is written outside the checkout, whatever HOME is.
export UV_CACHE_DIR := $(CURDIR)/.venv/.cache
export UV_SYSTEM_CERTS := 1
export UV_PYTHON_DOWNLOADS := never
export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Keep compiled code and tests: collecting the tests then takes 4 s, not 10.
unexport PYTHONDONTWRITEBYTECODE
export npm_config_cache := $(CURDIR)/.cache/npm
# Node has certificates of its own, and does not know the system's.
export NODE_EXTRA_CA_CERTS ?= $(firstword $(SSL_CERT_FILE) $(wildcard /etc/ssl/certs/ca-certificates.crt))

NODE := .cache/clients
PROVIDERS := .cache/providers
PRETTIER := .cache/prettier
SPARK := .cache/spark
PYTHON_CLIENT := .cache/python-client
CONTRACT := tenantadmin/lib/http/openapi.json
# The figures of clients/python/README.md are those of these releases.
SQLALCHEMY := $(addprefix .cache/sqlalchemy/,1.4.54 2.0.58 2.1.9)
TOOLS := .cache/tools
SUPERSET := .cache/superset
DRIVERS := $(patsubst tests/drivers/environments/%.txt,.cache/drivers/%,$(wildcard tests/drivers/environments/*.txt))
IMAGE := .cache/image
RUN_REQUIREMENTS := requirements.txt requirements-embedded.txt
DEV_REQUIREMENTS := $(RUN_REQUIREMENTS) requirements-dev.txt

.DEFAULT_GOAL := help
.PHONY: help run assess test test-slow test-image test-sail test-spark test-sqlalchemy test-superset test-providers test-ceph test-nginx test-drivers browser browser-pages check coverage mutants lint format bench fuzz contract screenshots clients lock clean

help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 14

run: .venv/run.stamp ## Run the whole service with demo data, on PORT (default 8000)
	@echo "Starting"
	@exec $(BIN)/python manage.py serve --demo

assess: .venv/run.stamp ## Say what a cache would save, from a warehouse's history: FILE=… FROM=snowflake|databricks|postgresql
	@test -n "$(FILE)" -a -n "$(FROM)" || { echo "Say which file: make assess FILE=history.csv FROM=snowflake (docs/assess.md)"; exit 1; }
	@export DJANGO_DEBUG=true; $(BIN)/python manage.py migrate --verbosity 0 && \
		$(BIN)/python manage.py assess $(FILE) --from $(FROM) $(ARGS)

# Some tests wait for deadlines, so there are more workers than processors.
PARALLEL := -n $$(( ($$(nproc) * 3 + 1) / 2 )) --dist worksteal

test: .venv/dev.stamp ## Run the tests, in parallel; slow ones, and those in a browser and of clients, have targets of their own
	@$(BIN)/pytest $(PARALLEL) -m "not slow" \
		--ignore=tests/browser --ignore=tests/clients --ignore=tests/drivers --ignore=tests/logs/sql/test_spark.py $(ARGS)

test-slow: .venv/dev.stamp ## Run the tests that take more than a second each, in parallel
	@$(BIN)/pytest $(PARALLEL) -m slow $$(grep -rl --include='test_*.py' 'mark\.slow' tests) $(ARGS)

# Tests of what is compiled, and the rules.
IMAGE_TESTS = tests/tosapp tests/rules tests/accounts/test_tokens*.py tests/accounts/test_signin*.py \
	tests/tenantadmin/lib/core/test_memory.py \
	tests/logs/test_convert.py tests/logs/test_entries.py tests/logs/test_writer.py tests/logs/sql/test_guard.py

test-image: $(IMAGE)/stamp ## Run a part of the tests on the newest Python that is there
	@$(IMAGE)/bin/python -m pytest $(PARALLEL) -p no:cacheprovider $(IMAGE_TESTS) $(ARGS)

browser: BROWSER_TESTS = tests/browser
browser: browser-pages ## Run the tests of pages in a browser, in parallel; needs Chromium, and tsc and npm to check the scripts

# Each page, by keyboard, narrow and dark, and the sign-in.
BROWSER_TESTS = $(wildcard tests/browser/*/test_look.py tests/browser/test_*.py) tests/browser/dashboard/test_types.py

browser-pages: .venv/dev.stamp ## Open each page in a browser; a quarter of the tests of `make browser`
	@! command -v npm >/dev/null || $(MAKE) --no-print-directory $(PRETTIER)/stamp || echo "Prettier could not be installed."
	@$(BIN)/pytest $(filter-out %/test_providers.py,$(BROWSER_TESTS)) \
		--deselect tests/browser/test_providers.py -n logical --dist worksteal $(ARGS)

check: lint clients browser test-sail test-image test test-slow ## Run all of this one after the other, as before a release

test-providers: .venv/dev.stamp $(PROVIDERS)/stamp ## Sign in through two OpenID providers whose clocks are wrong; needs Chromium and Node
	@$(BIN)/pytest -q tests/browser/test_providers.py $(ARGS)

test-ceph: .venv/dev.stamp ## Run the tests on S3 with Ceph as the server; needs Debian's ceph-mon, ceph-osd, radosgw and ceph-common
	@scripts/with_ceph.sh $(BIN)/pytest -q $$(grep -rl --include='test_*.py' 'from tests.s3 import' tests) $(ARGS)

# Debian has nginx where PATH of a user does not lead.
test-nginx: .venv/dev.stamp ## Run the tests of slow clients and of callers that hang up behind docker/nginx.conf; needs Debian's nginx
	@export TEST_NGINX="$$(PATH="$$PATH:/usr/sbin" command -v nginx)"; \
		test -n "$$TEST_NGINX" || { echo "nginx is missing. Debian: apt-get install nginx"; exit 1; }; \
		"$$TEST_NGINX" -v && $(BIN)/pytest -q -m nginx tests/faults $(ARGS)

test-sail: $(SPARK)/stamp ## Compare SQL on Spark Connect with DuckDB, on Sail, which is installed for it
	@RUST_LOG=error $(SPARK)/bin/python -m pytest tests/logs/sql/test_spark.py -q -m "not apache" -p no:cacheprovider $(ARGS)

test-spark: $(SPARK)/stamp ## The same on the Apache Spark that TEST_SPARK_URL names: sc://localhost:15002
	@test -n "$$TEST_SPARK_URL" || { echo "Set TEST_SPARK_URL. docs/scaling.md says how to start a server."; exit 1; }
	@$(SPARK)/bin/python -m pytest tests/logs/sql/test_spark.py -q -p no:cacheprovider $(ARGS)

test-sqlalchemy: .venv/dev.stamp $(SQLALCHEMY:=/stamp) ## Run SQLAlchemy's own tests of dialects on each version that the client supports
	@$(BIN)/pytest -q tests/clients/test_sqlalchemy_suite.py $(ARGS)

test-superset: .venv/dev.stamp $(SUPERSET)/stamp ## Let Apache Superset, which is installed for it, draw a chart of the log
	@$(BIN)/pytest -q tests/clients/test_superset.py

test-drivers: .venv/dev.stamp $(DRIVERS:=/stamp) ## Let real drivers ask the reference Gateway on the network; npm, Java and Debian for some
	@! command -v npm >/dev/null || $(MAKE) --no-print-directory .cache/drivers/node/stamp || echo "No drivers of Node."
	@! command -v java >/dev/null || $(MAKE) --no-print-directory .cache/drivers/pgjdbc/stamp || echo "No pgjdbc."
	@! command -v apt-get >/dev/null || $(MAKE) --no-print-directory .cache/drivers/odbc/stamp || echo "No psqlODBC."
	@$(BIN)/pytest -q tests/drivers $(ARGS)

coverage: ## Run both, and report what they do not cover; takes a quarter longer
	@$(MAKE) --no-print-directory test ARGS="--cov --cov-report= $(ARGS)"
	@$(MAKE) --no-print-directory test-slow ARGS="--cov --cov-append --cov-report=term $(ARGS)"

# One at a time: the tests share a database. "not checked" are those that ONLY leaves out.
mutants: .venv/dev.stamp ## Change the code in small ways and see whether the tests notice; ONLY='rules.lint.*' for a part
	@$(BIN)/mutmut run --max-children 1 $(ONLY)
	@$(BIN)/mutmut results | grep -v ': not checked$$' || true

lint: .venv/dev.stamp ## Check style, types, imports, requirements, and that migrations are complete
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	@# Once more with the tests, which may import the development requirements.
	$(BIN)/deptry . --exclude '\.venv|mutants' --non-dev-dependency-groups dev,embedded,sail
	@# The database is not running, and is not needed for this.
	DJANGO_DEBUG=true $(BIN)/python -W 'ignore:Got an error checking a consistent migration history' manage.py makemigrations --check

format: .venv/dev.stamp $(PRETTIER)/stamp ## Format the Python code, and the dashboard's scripts and styles; needs npm
	$(BIN)/ruff format .
	$(PRETTIER)/node_modules/.bin/prettier --write tenantadmin/static/dashboard

bench: .venv/dev.stamp ## Run the benchmarks
	@set -e; for name in http staff logs sql wire requests replay savings changes; do PYTHONPATH=clients/python/src $(BIN)/python -m bench $$name; done

fuzz: .venv/dev.stamp ## Fuzz the service against its contract, by other requests in every run
	@FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-60} $(BIN)/pytest tests/contract -n logical -q $(ARGS)

screenshots: .venv/dev.stamp ## Take the pictures of the documentation anew, from the demo; needs a Chromium
	@$(BIN)/python -m tests.browser.screenshots

contract: .venv/dev.stamp ## Write the text of the contract, and the generated parts of the documents, from the code
	$(BIN)/python -m scripts.contract > tests/contract/contract.txt
	DJANGO_SETTINGS_MODULE=tenantadmin.settings DJANGO_DEBUG=true $(BIN)/python -m scripts.permissions > docs/permissions.md
	$(BIN)/python -m scripts.queries > docs/queries.sql
	$(BIN)/python -m logs.sql.reference docs/sql.md

clients: .venv/dev.stamp $(NODE)/stamp $(PYTHON_CLIENT)/stamp $(TOOLS)/stamp $(filter .cache/sqlalchemy/2.0.%,$(SQLALCHEMY:=/stamp)) ## Check the contract with linters, and clients that are generated from it; needs Node, npm and Java
	@REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true $(NODE)/node_modules/.bin/redocly lint \
		--max-problems 1000 --config tests/clients/scripts/redocly.yaml $(CONTRACT)
	@$(NODE)/node_modules/.bin/spectral lint --fail-severity warn \
		--ruleset tests/clients/scripts/spectral.yaml $(CONTRACT)
	@$(BIN)/pytest tests/clients -q

run test test-slow test-nginx test-image browser-pages fuzz clients contract: $(CONTRACT)

# After the requirements, which the targets name first.
$(CONTRACT): $(shell find accounts analytics logs rules tenantadmin tosapp -name '*.py' -not -path '*/migrations/*')
	@echo "Writing the contract"
	@DJANGO_DEBUG=true $(BIN)/python manage.py spectacular --format openapi-json --fail-on-warn --file $@.new
	@mv $@.new $@

$(PROVIDERS)/stamp: tests/browser/package.json
	@mkdir -p $(PROVIDERS) && cp $< $(PROVIDERS)/
	@npm install --prefix $(PROVIDERS) --no-package-lock --no-audit --no-fund --silent --fetch-retries 1
	@touch $@

$(PRETTIER)/stamp: tests/browser/dashboard/package.json
	@mkdir -p $(PRETTIER) && cp $< $(PRETTIER)/
	@npm install --prefix $(PRETTIER) --no-package-lock --no-audit --no-fund --silent --fetch-retries 1
	@touch $@

$(NODE)/stamp: tests/clients/scripts/package.json
	@mkdir -p $(NODE) && cp $< $(NODE)/
	@npm install --prefix $(NODE) --no-package-lock --no-audit --no-fund --silent --fetch-retries 1
	@# A jar in a Python package. It is of no use without Java.
	@! command -v java >/dev/null || $(BIN)/python -m pip install --quiet --upgrade --no-deps \
		--target $(NODE)/openapi-generator 'openapi-generator-cli==7.*'
	@touch $@

$(SPARK)/stamp: $(DEV_REQUIREMENTS) requirements-spark.txt .venv/base.stamp
	@$(PYTHON) -m venv $(SPARK)
	@$(call install,$(DEV_REQUIREMENTS) requirements-spark.txt,$(SPARK))
	@touch $@

NEWEST = $(firstword $(foreach version,3.14 3.13 3.12,$(shell \
	PYENV_VERSION=$(version) python$(version) -c 'import sys, venv, ensurepip; print(sys.executable)' 2>/dev/null)))

$(IMAGE)/stamp: $(DEV_REQUIREMENTS) .venv/base.stamp
	@test -n "$(NEWEST)" || { echo "There is no Python 3.12 or newer."; exit 1; }
	@$(NEWEST) -m venv --clear $(IMAGE)
	@$(call install,$(DEV_REQUIREMENTS),$(IMAGE))
	@touch $@

$(PYTHON_CLIENT)/stamp: clients/python/pyproject.toml $(wildcard clients/python/src/*/*.py)
	@rm -rf $(PYTHON_CLIENT)*
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(PYTHON_CLIENT)-wheel ./clients/python
	@$(call install_client,$(PYTHON),$(PYTHON_CLIENT),arrow$(comma)cli$(comma)mcp$(comma)sqlalchemy)
	@# The oldest and the newest Python that the client supports, where they are.
	@for version in 3.10 3.13; do \
		python=$$(PYENV_VERSION=$$version python$$version -c 'import sys, venv; print(sys.executable)' 2>&-) || continue; \
		$(call install_client,$$python,$(PYTHON_CLIENT)-$$version,cli$(comma)sqlalchemy) || exit 1; done
	@touch $@

.cache/sqlalchemy/%/stamp: .venv/base.stamp
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet sqlalchemy==$* httpx pytest
	@touch $@

.cache/drivers/%/stamp: tests/drivers/environments/%.txt .venv/base.stamp
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet -r $<
	@touch $@

.cache/drivers/node/stamp: tests/drivers/scripts/package.json
	@mkdir -p $(@D) && cp $< $(@D)/
	@npm install --prefix $(@D) --no-package-lock --no-audit --no-fund --silent --fetch-retries 1
	@touch $@

# Debian's, whose release decides the version.
.cache/drivers/pgjdbc/stamp:
	@mkdir -p $(@D) && cd $(@D) && apt-get download -qq libpostgresql-jdbc-java && dpkg -x *.deb . && \
		cp -L usr/share/java/postgresql.jar .
	@touch $@

# The driver, and what it and pyodbc need of the system.
.cache/drivers/odbc/stamp:
	@mkdir -p $(@D) && cd $(@D) && apt-get download -qq odbc-postgresql libodbc2 libodbcinst2 libltdl7 libpq5 && \
		for package in *.deb; do dpkg -x $$package . || exit 1; done && ln -sfn usr/lib/*-linux-gnu* lib && \
		! LD_LIBRARY_PATH=lib ldd lib/odbc/psqlodbcw.so | grep "not found"
	@touch $@

# What reads the log beside the client, the engine of the service to compare with, and tests of others for DB-API.
$(TOOLS)/stamp: requirements.txt .venv/base.stamp
	@$(PYTHON) -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet $$(grep -oE '^duckdb==[0-9.]+' requirements.txt) dbapi-compliance==1.15.0 \
		httpx pandas polars pyarrow sqlalchemy
	@touch $@

# Superset 6.1 does not start with a newer Flask-Caching, and does not name cachetools among its requirements.
$(SUPERSET)/stamp: .venv/base.stamp clients/python/pyproject.toml
	@$(PYTHON) -m venv $(SUPERSET)
	@$(SUPERSET)/bin/python -m pip install --quiet 'apache-superset==6.1.*' 'flask-caching<2.4' cachetools \
		'./clients/python[sqlalchemy]'
	@touch $@

# Each file has only what the files before it lack, so they are installed together. A requirement of some systems or
# versions of Python alone is repeated, since a later file may need it on all. CPython is the only implementation.
lock: .venv/dev.stamp ## Resolve the requirements of pyproject.toml into the locked files
	$(LOCK) -o requirements.txt pyproject.toml
	$(LOCK) $(call beyond,requirements.txt) --group embedded -o requirements-embedded.txt
	$(LOCK) $(call beyond,$(RUN_REQUIREMENTS)) --group dev -o requirements-dev.txt pyproject.toml
	$(LOCK) $(call beyond,$(DEV_REQUIREMENTS)) --extra spark --group sail -o requirements-spark.txt pyproject.toml

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
beyond = $(addprefix -c ,$(1)) $$(sed -nE 's/^([a-z0-9_-]+)[^;]*==[^;]*(;.*implementation.*)?$$/--no-emit-package \1/p' $(1))

clean: ## Remove what was set up, and caches; the data in var stay
	rm -rf .venv .cache .coverage .coverage.* htmlcov mutants .pytest_cache .mypy_cache .ruff_cache \
		.import_linter_cache .hypothesis staticfiles
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- Set-up -------------------------------------------------------------------------------------

.venv/base.stamp:
	@test "$$(uname -s)" = Linux || { echo "This service runs on Linux alone; elsewhere in a container:" \
		'docker run --rm -it -p 8000:8000 -e HOST=0.0.0.0 -e VAR_DIR=/var/lib/tenantadmin' \
		'-v tenantadmin:/var/lib/tenantadmin -v "$$PWD":/app -w /app python:3.12 make run'; exit 1; }
	@test -w . || { echo "$(CURDIR) cannot be written: clone into a folder of yours."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed, and $(PYTHON) is not: make PYTHON=/path/to/python3.11 …"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>&- || { \
		echo "$(PYTHON) has no venv: install it (Debian: apt-get install python3-venv), or set PYTHON."; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		echo "Making .venv"; $(PYTHON) -m venv --clear .venv; }
	@touch $@

# The development tools stay if they are installed.
.venv/run.stamp: $(RUN_REQUIREMENTS) .venv/base.stamp
	@$(call install,$(if $(wildcard .venv/dev.stamp),$(DEV_REQUIREMENTS),$(RUN_REQUIREMENTS)))
	@touch $@

.venv/dev.stamp: $(DEV_REQUIREMENTS) .venv/base.stamp
	@$(call install,$(DEV_REQUIREMENTS))
	@touch .venv/run.stamp $@

# uv uses pip's index, and a cache of its own for each environment, so that two can be installed at once. Argument: the
# folder of the environment.
define with_index
index="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}}"; \
env UV_CACHE_DIR="$(CURDIR)/$(1)/.cache" $${index:+UV_DEFAULT_INDEX="$$index"}
endef

# Arguments: files of requirements, and the folder of the environment if it is another than .venv.
install = $(call with_index,$(or $(2),.venv)) scripts/install.sh $(or $(2),.venv)/bin/python $(1)

# Arguments: a Python, the folder of its environment, and extras of clients/python.
define install_client
wheel="$$(echo $(PYTHON_CLIENT)-wheel/*.whl)[$(3)]"; \
if test -x $(BIN)/uv; then \
	$(BIN)/uv venv --quiet --python $(1) $(2) && \
	{ $(call with_index,$(2)) $(BIN)/uv pip install --quiet --python $(2)/bin/python "$$wheel" && rm -rf $(2)/.cache; }; \
else $(1) -m venv $(2) && $(2)/bin/python -m pip install --quiet "$$wheel"; fi
endef
comma := ,
