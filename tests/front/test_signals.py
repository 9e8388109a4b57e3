"""Signals that end a run as Ctrl-C does."""

from __future__ import annotations

import signal

import pytest

from campaign.cli.running import terminated_like_interrupted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_run_is_an_interrupt_and_its_handler_comes_back(number):
    before = signal.signal(number, signal.SIG_DFL)  # the tests themselves may run under nohup
    try:
        with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
            signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_hang_up_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminated_like_interrupted():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
