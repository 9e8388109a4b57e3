"""Experiment-tracking campaign manager for ML training speed: matched rounds, verdicts, a ledger.

What a training script uses is here, and loaded when it is first asked for: a light verb must not pay for it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from campaign.callables import Setup
    from campaign.comparison import Comparison
    from campaign.loop import record, step, steps
    from campaign.measurement import measure

__version__ = "0.1.0"
__all__ = ["Comparison", "Setup", "measure", "record", "step", "steps"]
_PLACES = {"record": "campaign.loop", "step": "campaign.loop", "steps": "campaign.loop"}
_PLACES |= {"Comparison": "campaign.comparison", "Setup": "campaign.callables", "measure": "campaign.measurement"}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(_PLACES[name]), name)
    return value
