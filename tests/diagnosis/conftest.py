"""The real traces, as the tests of the readers have them."""

from tests.traces.conftest import real_traces

__all__ = ["real_traces"]
