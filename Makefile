# Everything runs in a virtual environment, which the first target that needs it makes. It holds the versions of
# constraints.txt, so a new release of a dependency changes nothing here.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
STAMP := $(VENV)/.ready
EXTRAS := eval ray scenes
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
SOURCES := judges metrics lmms_eval_tasks model_wrappers construction scorer verification analysis cli
TYPED := $(addprefix .typing/lmms_eval_captions/,__init__.py $(SOURCES))
QUICK := tests/ci/test_base_install.py tests/metrics tests/judges/protocols tests/judges/endpoint/batch \
    $(wildcard tests/lmms_eval_tasks/test_*.py) tests/lmms_eval_tasks/data tests/lmms_eval_tasks/vdc \
    tests/model_wrappers/video tests/model_wrappers/test_caption_hf.py tests/model_wrappers/hf/test_shared_prefix.py
export HF_HUB_OFFLINE ?= 1

.PHONY: setup lock demo check test test-quick golden test-lowest test-latest test-full test-real test-nightly package docs docs-fix clean
setup: $(STAMP)

$(STAMP): pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --upgrade pip
	$(PIP) install --constraint constraints.txt --build-constraint constraints.txt --editable ".[$(shell echo $(EXTRAS) | tr " " ,)]" --group dev
	touch $@

# Adds what pyproject.toml newly requires and keeps all other versions; UPGRADE=--upgrade takes the newest ones.
lock:
	$(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet --disable-pip-version-check uv
	UV_CUSTOM_COMPILE_COMMAND="make lock    (the versions that are tested, for Python 3.10 to 3.13)" \
	    .venv-lock/bin/uv pip compile pyproject.toml $(addprefix --extra ,$(EXTRAS)) --group dev --group docs \
	    --universal --python-version 3.10 --prerelease disallow --no-annotate --quiet $(UPGRADE) -o constraints.txt
	$(MAKE) test-quick

# The built-in sample, from pixels to scores: no key, no network, no GPU.
demo: setup
	LMMS_CAPTIONS_DATA=sample LMMS_CAPTIONS_JUDGE=lexical $(BIN)/lmms-eval-captions run --model caption_baseline \
	    --tasks video_captions,dream1k,carebench,salmonn2,ugc_videocap,caption_qa \
	    --output_path demo-results --log_samples
	@LMMS_CAPTIONS_DATA=sample $(BIN)/lmms-eval-captions report demo-results -o demo-results/report.html

check: setup package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/english.py
	$(BIN)/mypy $(TYPED) benchmarks tests .ci
	# import-linter needs Python 3.11.
	test ! -x $(BIN)/lint-imports || PYTHONPATH=.typing $(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/deptry $(SOURCES)
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive $(SOURCES) benchmarks .ci
	$(BIN)/python .ci/audit.py

# The source distribution and the wheel, in dist/.
package: setup
	rm -rf build dist
	$(BIN)/python -m build --no-isolation --outdir dist > dist.log 2>&1 || { cat dist.log; exit 1; }
	rm -rf dist.log build
	$(BIN)/twine check --strict dist/*

# Three processes on two cores, as most tests wait more than they work. They begin with the longest.
# Properties are tried with the same examples every time, so that what fails was changed.
test: setup
	$(BIN)/python -m pytest -q -n 3

# Writes the golden outputs anew and prints what differs from before.
golden: setup
	GOLDEN=1 $(BIN)/python -m pytest -q -s tests/golden

# A five-minute subset, for another set of versions.
test-quick: setup
	$(BIN)/python -m pytest -q -n 2 $(QUICK)

# The lowest versions that pyproject.toml allows for the base install and eval, in an environment of their own.
test-lowest: setup
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-lowest
	$(BIN)/uv pip install --python .venv-lowest --resolution lowest-direct --editable ".[eval]"
	$(BIN)/uv pip freeze --python .venv-lowest --exclude-editable > .venv-lowest/versions.txt
	$(BIN)/uv pip install --python .venv-lowest --constraint .venv-lowest/versions.txt --group test
	touch .venv-lowest/.ready
	$(MAKE) VENV=.venv-lowest demo test-quick

# The newest releases, in an environment of their own: what breaks here breaks for the next user of `pip install`.
test-latest: setup
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-latest
	$(BIN)/uv pip install --python .venv-latest --editable ".[eval]" --group test
	touch .venv-latest/.ready
	$(MAKE) VENV=.venv-latest demo test-quick

# The same with all 96,825 questions of VDC in one run, which takes some minutes more, and with other examples each time.
test-full: setup
	FULL_SIZE=1 $(MAKE) test

# A real small model behind a real vLLM server judges the sample's first clip in every protocol: 4 GB in ~/.cache
# the first time (see tests/support/small_model.py), then some forty minutes on two cores. SMALL_MODEL_VIDEOS=12 plays all, SMALL_MODEL_VDC_QUESTIONS=19 all of 20 videos of VDC.
# What the runs say is shown as it comes, with the time. SMALL_MODEL_TIMEOUT=900 is for machines that the benchmarks'
# own time-outs are too short on. Then caption_vllm writes captions of tiny checkpoints on the same vLLM.
test-real: setup
	$(BIN)/python -m pytest -q -s -m real

# Campaigns of random faults and damage, simulations of intervals and of impostor judges, a policy that learns, then the real model.
test-nightly: setup
	$(BIN)/python benchmarks/faults.py --scenarios 200
	$(BIN)/python benchmarks/store_damage.py --flips 20000 --others 5000 --runs 20
	$(BIN)/python benchmarks/clips.py --clips 300
	$(BIN)/python benchmarks/building.py filters
	$(BIN)/python benchmarks/coverage.py --simulations 300
	$(BIN)/python benchmarks/coverage_labels.py --simulations 300
	$(BIN)/python benchmarks/judge_verification.py
	$(BIN)/python benchmarks/reward_learning.py
	$(BIN)/python -m pytest -q -n 2 -m nightly
	WHOLE_ZOO=1 $(BIN)/python -m pytest -q -n 2 tests/model_wrappers/hf/test_architectures.py
	$(MAKE) test-real

# The pages as a site, in site/, with the report of the sample to click through.
docs: setup
	$(PIP) install --constraint constraints.txt --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tests/support/snippets.py --report $(CURDIR)/site/sample-report.html

# Runs the snippets of README, docs and the notebook, and writes what they print into the pages.
docs-fix: setup
	$(BIN)/python tests/support/snippets.py

clean:
	rm -rf $(VENV) .venv-lock .venv-lowest .venv-latest demo-results dist site build *.egg-info .mypy_cache .ruff_cache .pytest_cache
