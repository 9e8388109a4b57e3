"""What is wrong with an override is said before Hydra sees it, from the folders of `conf/` and the grammar."""

from __future__ import annotations

from collections.abc import Sequence

from hydra.core.override_parser.types import Glob, Override, QuotedString, ValueType

from campaign.config.compose import GROUPS, Composer
from campaign.config.edits import parse
from campaign.config.parameters import check_parameter
from campaign.errors import BadInput, UnknownName

ALONE = "arms must be measured one after another; another launcher or sweeper would run them side by side"
SWEEPERS = ("basic", "optuna")


def check_overrides(written: Sequence[str], composer: Composer, *, sweep: bool) -> None:
    """Raises BadInput or UnknownName for the first override that cannot mean what was typed."""
    for text in written:
        if "=" not in text and not text.startswith("~"):
            near = composer.options("hypothesis")
            remedy = f"hypothesis={text}" if text in near else "KEY=VALUE"
            raise BadInput(f"{text!r} is not an override: it has no '='", remedy=remedy)
        override = parse(text)
        key = override.key_or_group
        known = {"hydra/launcher": ("basic",), "hydra/sweeper": SWEEPERS}.get(key)
        if known is not None and override.value() not in known:
            raise BadInput(f"{text}: {ALONE}", remedy=f"{key}={known[0]}, or leave it out")
        if key == "hydra/sweeper" and override.value() == "optuna" and not sweep:
            raise BadInput(f"{text} searches over a range, in a sweep", remedy=f"-m {text}")
        if override.package is not None:
            raise BadInput(
                f"{text!r}: '@' places a group elsewhere, and every group here has one place",
                remedy=text.replace(f"@{override.package}", ""),
            )
        if key.rsplit(".", 1)[-1] == "_target_":
            raise BadInput(
                f"{key}: what code a workload is comes from a file of conf/workload, never from a command line",
                remedy="make a file of it, conf/workload/NAME.yaml, and choose it: workload=NAME",
            )
        if key in GROUPS:
            _check_choice(text, override, composer, sweep=sweep)
            continue
        if key.split(".", 1)[0] in composer.options("hypothesis"):
            check_parameter(text, key, _hypotheses(written, composer), composer)
        if override.is_sweep_override() and not sweep:
            values = text.split("=", 1)[1]
            raise BadInput(
                f"{text!r} lists several values",
                remedy=f"-m {text} for one run each, or {key}=[{values}] for a list",
            )


def _check_choice(text: str, override: Override, composer: Composer, *, sweep: bool) -> None:
    group, options = override.key_or_group, composer.options(override.key_or_group)
    listed = f"{group}=NAME, one of: {', '.join(options)}"
    if override.is_delete():
        raise BadInput(f"{text!r}: a run needs a {group}", remedy=listed)
    if override.is_add() or override.is_force_add():
        raise BadInput(f"{text!r}: a {group} is chosen already, so there is none to add", remedy=text.lstrip("+"))
    value = override.value()
    if isinstance(value, list | dict):
        names = [_name(item) for item in value]
        right = f"-m {group}={','.join(names)}" if group == "hypothesis" else f"{group}={names[0] if names else 'NAME'}"
        raise BadInput(
            f"{text!r} would merge them into one {group} and keep the last; each {group} is a run of its own",
            remedy=right,
        )
    if override.value_type in (ValueType.GLOB_CHOICE_SWEEP, ValueType.RANGE_SWEEP, ValueType.INTERVAL_SWEEP):
        if not sweep:
            raise BadInput(f"{text!r} stands for several runs", remedy=f"-m {text}")
        return
    if override.is_sweep_override():
        names = list(override.sweep_string_iterator())
        if not sweep:
            raise BadInput(f"{text!r} lists several {group} options", remedy=f"-m {group}={','.join(names)}")
    else:
        names = [_name(value)]
    for name in names:
        if name not in options and composer.every_option_is_known:
            raise UnknownName(group, name, options, remedy=listed)


def _hypotheses(written: Sequence[str], composer: Composer) -> list[str]:
    """The hypotheses that the overrides choose; the config's own where they choose none."""
    for text in written:
        override = parse(text)
        if override.key_or_group != "hypothesis":
            continue
        value = override.value()
        if isinstance(value, Glob):
            return list(value.filter(composer.options("hypothesis")))
        if override.is_sweep_override():
            return list(override.sweep_string_iterator())
        return [_name(value)]
    return [str(composer.compose([]).choices["hypothesis"])]


def _name(value: object) -> str:
    return value.text if isinstance(value, QuotedString) else str(value)
