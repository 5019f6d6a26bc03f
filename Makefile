# Everything runs in a virtual environment of its own, which the first target that needs it makes.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
STAMP := $(VENV)/.ready
SOURCES := judges metrics lmms_eval_tasks model_wrappers
TYPED := $(addprefix .typing/lmms_eval_captions/,__init__.py $(SOURCES))
export HF_HUB_OFFLINE ?= 1

.PHONY: setup demo check test test-full test-real docs clean
setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

# The built-in sample, from pixels to scores: no key, no network, no GPU.
demo: setup
	LMMS_CAPTIONS_DATA=sample LMMS_CAPTIONS_JUDGE=lexical $(BIN)/lmms-eval --model caption_baseline \
	    --tasks video_captions --output_path demo-results --log_samples
	@$(BIN)/lmms-eval-captions check demo-results > demo-results/check.txt || { cat demo-results/check.txt; exit 1; }
	@LMMS_CAPTIONS_DATA=sample $(BIN)/lmms-eval-captions report demo-results -o demo-results/report.html

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(TYPED) benchmarks tests .ci
	PYTHONPATH=.typing $(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/deptry $(SOURCES) benchmarks
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive $(SOURCES) benchmarks .ci
	$(BIN)/python .ci/audit.py

# Two processes, as most tests wait more than they work; but for whole runs, the tests of a file stay together.
# Properties are tried with the same examples every time, so that what fails was changed.
test: setup
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not cli"
	$(BIN)/python -m pytest -q -n 2 -m cli

# The same with all 96,825 questions of VDC in one run, which takes some minutes more, and with other examples each time.
test-full: setup
	FULL_SIZE=1 $(MAKE) test

# A real small model behind a real vLLM server judges the sample's first clip in every protocol: 4 GB in ~/.cache
# the first time (see tests/helpers/small_model.py), then some forty minutes on two cores. SMALL_MODEL_VIDEOS=12 plays all, SMALL_MODEL_VDC_QUESTIONS=19 all of 20 videos of VDC.
# What the runs say is shown as it comes, with the time. SMALL_MODEL_TIMEOUT=900 is for machines that the benchmarks'
# own time-outs are too short on. Then caption_vllm writes captions of tiny checkpoints on the same vLLM.
test-real: setup
	$(BIN)/python -m pytest -q -s -m real

# The pages as a site, in site/: every link and every file that is shown must be there.
docs: setup
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) demo-results site build *.egg-info .mypy_cache .ruff_cache .pytest_cache
