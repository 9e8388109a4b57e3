"""The cheats are what they say, by counting and without a clock: less done in the caller's own `step`."""

from __future__ import annotations

import threading

import pytest

LESS = [
    ("stale_weights", {"bits": 4, "weights": "cached"}),
    ("stale_activations", {}),
    ("epoch_cache", {}),
    ("skipped_block", {}),
    ("dropped_gradient", {}),
    ("dropped_bias", {}),
    ("frozen_late", {}),
    ("old_gradient", {}),
    ("waited_before_the_clock", {"pause": 0.001}),
    ("half_batch", {}),
    ("skipped_update", {}),
    ("replayed", {}),
    ("replayed_late", {}),
    ("unrecomputed", {}),
    ("kept_through_restart", {}),
    ("rewound", {}),
    ("rare_bias", {}),
    ("threaded", {}),
    ("early", {}),
    ("owed_step", {}),
    ("paid_before_the_clock", {}),
    ("paid_by_the_collector", {}),
    ("forked", {}),
    ("orphaned", {}),
    ("shared_rounding", {"bits": 4}),
]


def work_of_steps(network, first, last):
    """What this thread counted inside `step` over the steps from `first` to `last`."""
    total, mine = 0, threading.get_ident()
    for number in range(1, last + 1):
        before = network.work[mine]
        network.step()
        total += network.work[mine] - before if number >= first else 0
        network.synchronize()
        network.synchronize()
    return total


@pytest.mark.parametrize(("name", "config"), LESS)
def test_the_cheat_does_less_in_its_step_than_the_honest_one(networks, name, config):
    honest, faster = networks.Workload(**config), networks.Workload(cheat=name, **config)
    assert work_of_steps(faster, 9, 20) < work_of_steps(honest, 9, 20)
    faster.last_step()
    faster.close()


@pytest.mark.parametrize(
    ("slow", "fast"),
    [
        ({"number": "float64"}, {"number": "float32"}),
        ({"pause": 0.001}, {"pause": 0.0}),
        ({"checkpoint": True}, {"checkpoint": False}),
        ({"bits": 4, "weights": "per_use"}, {"bits": 4, "weights": "cached"}),
    ],
)
def test_the_edit_of_a_key_does_less(networks, slow, fast):
    assert work_of_steps(networks.Workload(**fast), 1, 9) < work_of_steps(networks.Workload(**slow), 1, 9)


def test_the_honest_step_learns(networks):
    network = networks.Workload()
    network.step()
    first = network.last_step()["loss"]
    for _ in range(100):
        network.step()
    assert network.last_step()["loss"] < first / 2


def test_the_honest_gradient_is_that_of_finite_differences(networks):
    network = networks.Workload(number="float64", learning_rate=0.0)
    network.step()
    for name, gradient in network.gradients().items():
        at, h = tuple(size // 2 for size in gradient.shape), 1e-6
        losses = []
        for shift in (h, -2 * h):
            network.value[name][at] += shift
            network.steps = 0
            network.step()
            losses.append(network.loss)
        network.value[name][at] += h
        assert (losses[0] - losses[1]) / (2 * h) == pytest.approx(network_gradient(networks, name, at), rel=1e-5)


def network_gradient(networks, name, at):
    network = networks.Workload(number="float64", learning_rate=0.0)
    network.step()
    return network.gradients()[name][at]


def test_a_restart_repeats_the_first_step_to_the_bit(networks):
    network = networks.Workload(bits=4, weights="cached")
    network.step()
    first = network.last_step(), {name: value.tobytes() for name, value in network.gradients().items()}
    for _ in range(5):
        network.step()
    network.restart()
    network.step()
    assert (network.last_step(), {name: value.tobytes() for name, value in network.gradients().items()}) == first
