"""The error a kernel raises where it cannot run, and when it is Triton that is missing."""

from __future__ import annotations


class Unavailable(RuntimeError):
    """This machine cannot run what was asked for.

    `reason` is one sentence that says what is missing, `remedy` what to install or type. Nothing falls back to
    another implementation, because then the thing measured would not be the thing named.
    """

    def __init__(self, *, reason: str, remedy: str) -> None:
        super().__init__(f"{reason} {remedy}")
        self.reason = reason
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments would be lost by the default pickling, and these errors cross process borders.
        return (_rebuild, (self.reason, self.remedy))


def _rebuild(reason: str, remedy: str) -> Unavailable:
    return Unavailable(reason=reason, remedy=remedy)


def without_triton(error: ModuleNotFoundError, instead: str) -> Exception:
    """What to raise where a file of Triton kernels could not be imported: `Unavailable` with `instead` as another way
    out, or `error` itself where something else than Triton is missing."""
    if error.name is None or error.name.split(".")[0] != "triton":
        return error
    return Unavailable(reason="Triton is not installed.", remedy=f"Install it (pip install triton), or {instead}.")
