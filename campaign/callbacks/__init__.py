"""Training loops of other libraries, gated by a callback in place of `campaign.steps`.

    from campaign.callbacks import HuggingFace
    trainer = Trainer(..., callbacks=[HuggingFace()])          # transformers

    from campaign.callbacks import Lightning
    trainer = Trainer(..., callbacks=[Lightning()])            # lightning.pytorch, or pytorch_lightning

A loop of Accelerate's is one's own, and needs none: `for batch in campaign.steps(accelerator.prepare(loader))`.

A step is an optimizer step, whatever number of batches it accumulates. It reaches from the end of one optimizer step
to the end of the next, so that its gradients can still be read at the gate. Outside a campaign's trial a callback does
nothing. Each class is loaded, with its library, when it is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from campaign.callbacks.hugging_face import HuggingFace
    from campaign.callbacks.lightning import Lightning

__all__ = ["HuggingFace", "Lightning"]
_PLACES = {"HuggingFace": ("hugging_face", "transformers"), "Lightning": ("lightning", "lightning")}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module, library = _PLACES[name]
    try:
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        missing = f"campaign.callbacks.{name} needs {library}, and {error.name} is not installed here: "
        raise ModuleNotFoundError(f"{missing}pip install {library}", name=error.name) from error
    return value
