"""Experiment-tracking campaign manager for ML training speed: matched rounds, verdicts, a ledger."""

__version__ = "0.1.0"
