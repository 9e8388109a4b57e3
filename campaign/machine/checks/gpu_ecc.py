"""Error correction of the device's memory (nvidia-smi ecc.mode, ecc.errors.uncorrected.volatile.total): its mode is a
part of the fingerprint, and uncorrected errors are wrong numbers."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, Answer, Look

NAME, GROUP = "ECC", "GPU"


def check(look: Look) -> Answer | None:
    if look.gpu is None or look.gpu.absent:
        return None
    mode, pending = look.gpu.fields.get("ecc.mode.current"), look.gpu.fields.get("ecc.mode.pending")
    if mode is None:
        return Answer(FIT, "this device has none")
    errors = look.gpu.number("ecc.errors.uncorrected.volatile.total")
    seen = {"Enabled": "on", "Disabled": "off"}.get(mode, mode)
    if errors:
        return Answer(
            UNFIT,
            f"{seen}, {errors:.0f} uncorrected errors since the driver was loaded",
            "numbers that were wrong in memory cannot be told from an edit's",
            "have the device looked at: nvidia-smi -q -d ECC,ROW_REMAPPER",
        )
    if pending is not None and pending != mode:
        return Answer(
            DOUBTFUL,
            f"{seen}, {pending.lower()} after the next reset",
            "the fingerprint changes then: what was measured before is no longer comparable",
            "have the device reset before the campaign begins",
        )
    return Answer(FIT, seen)
