.PHONY: setup demo test clean

PYTHON ?= python3
VENV := .venv

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0 -e '.[dev]'
	touch $@

demo: setup
	$(VENV)/bin/python -m campaign hypothesis=prenorm_fusion

test: setup
	$(VENV)/bin/python -m pytest -n 2

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
