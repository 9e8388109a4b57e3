"""`campaign feasibility`: can the run end in time on the devices that there are, and what would it take?"""

from __future__ import annotations

import sys

from campaign.cli.answer import write
from campaign.discovery import DEFAULT_CAMPAIGN, campaign_folder, project_root
from campaign.errors import EXIT_DECIDED, BadInput, NotAProject

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from campaign.feasibility.found import Attention, Feasibility, Goal, Overhead, Rate, Roof
    from campaign.ledger import Ledger

SUMMARY = "can the budget be trained in time on this device, and what would it take"
MORE = """\
Numbers may be 14.08k, 1.0009e9, 1.0009B, 7d, 36h, 3%. Tokens a second are those of one device on whole steps without a
profiler; without --tokens-per-second they are root's and head's of the ledger. The ceilings are those of the last
diagnosis recorded there (campaign diagnose TRACE --record). Works outside a project too.

examples:
  campaign feasibility --tokens-per-second 14.08k --parameters 1.0009e9 --tokens-per-parameter 20 --days 7
  campaign feasibility --tokens-per-second 14.08k --parameters 1.0009B --token-budget 20B --days 7 --device h100
  campaign feasibility --parameters 1.0009B --tokens-per-parameter 20 --days 7 --devices 2 --scaling-efficiency 0.92

Exit codes: 0 there is an answer, whatever it is; 2 bad input; 3 --measure found nothing to measure."""
MOST_TOKENS, MOST_PARAMETERS, MOST_RATE, MOST_DAYS, MOST_DEVICES = 1e18, 1e15, 1e12, 36_500, 1_000_000
GIVEN = "given on the command line"


def feasibility_arguments(parser: argparse.ArgumentParser) -> None:
    """What is wanted, what there is, and what is known of the device."""
    goal = parser.add_argument_group("what is wanted")
    goal.add_argument("--parameters", metavar="N", help="of the model: 1.0009e9 or 1.0009B")
    goal.add_argument("--tokens-per-parameter", metavar="R", help="the budget by the model's size: 20")
    goal.add_argument("--token-budget", metavar="N", help="the budget outright: 20.018e9")
    goal.add_argument("--days", metavar="T", help="the time there is: 7, 7d, 36h, 2w")
    there = parser.add_argument_group("what there is")
    there.add_argument("--tokens-per-second", metavar="RATE", help="of one device: 14.08k (default: the ledger's)")
    there.add_argument("--devices", metavar="N", help="how many (default: 1)")
    there.add_argument("--scaling-efficiency", metavar="E", help="what each of several does of one alone (default: 1)")
    roof = parser.add_argument_group("the device's peak, for the model FLOP utilisation")
    roof.add_argument("--device", metavar="NAME", help="a row of the table of datasheets: h100, h200, a100, ...")
    roof.add_argument("--peak", metavar="FLOPS", help="dense operations a second where the table lacks it: 275T")
    roof.add_argument("--measure", metavar="DEVICE", nargs="?", const="", help="by a matmul and a copy here: cpu, cuda")
    roof.add_argument("--precision", metavar="P", help="fp8, bf16, fp16, tf32, fp32, fp4 (default: bf16)")
    for name, said in (("context", "tokens"), ("layers", "that attend"), ("width", "heads times head size")):
        roof.add_argument(f"--{name}", metavar="N", help=f"{said}; all three add attention's operations")
    cost = parser.add_argument_group("periodic costs, as shares of the wall time (default: none is counted)")
    cost.add_argument("--overhead", metavar="SHARE", help="all of them together: 3%% or 0.03")
    for name in ("optimizer", "evaluation", "checkpoint", "input"):
        cost.add_argument(f"--{name}-share", metavar="SHARE", help="this one: 0.02")
    parser.add_argument("--without-diagnosis", action="store_true", help="leave the ledger's diagnosis out")
    parser.add_argument("--export", choices=("md",), help="the answer as a page in this format")
    parser.add_argument("--out", metavar="FILE", help="write it to a file instead of stdout")


def feasibility(given: argparse.Namespace) -> int:
    """Read the numbers, look into the ledger, answer; the exit code. Raises CampaignError."""
    from campaign.feasibility.quantities import example

    if given.export and given.json:
        raise BadInput("--export and --json are two forms of one answer", remedy=example("--json"))
    if given.out and not (given.export or given.json):
        raise BadInput("--out needs a format", remedy=example("--export md", "--out feasibility.md"))
    goal = _goal(given)
    rate = _rate(given)
    precision = _precision(given)
    if goal.parameters is None and (given.device or given.peak or given.measure is not None):
        raise BadInput("a utilisation is 6 operations a parameter and token: --parameters", remedy=example())
    roofs = _roofs(given, precision)
    found = _answered(given, goal, rate, roofs)
    if given.measure is not None:  # last: nothing that a person typed wrong waits for it
        found = _answered(given, goal, rate, [*roofs, _measured(given.measure, precision, given.campaign)])
    _write(given, found)
    return EXIT_DECIDED


def _goal(given: argparse.Namespace) -> Goal:
    from campaign.feasibility.found import Goal
    from campaign.feasibility.quantities import days, example, large, part, whole

    if given.days is None:
        raise BadInput("how many days are there? --days", remedy=example())
    time = days(given.days, "--days", MOST_DAYS)
    parameters = ratio = None
    if given.parameters is not None:
        parameters = large(given.parameters, "--parameters", "a count of parameters", 1, MOST_PARAMETERS)
    if given.tokens_per_parameter is not None and given.token_budget is not None:
        raise BadInput("--tokens-per-parameter and --token-budget are two budgets: give one", remedy=example())
    if given.token_budget is not None:
        budget = large(
            given.token_budget, "--token-budget", "a count of tokens", 1, MOST_TOKENS,
            remedy=example("--token-budget 20.018e9", without=("--tokens-per-parameter",)),
        )  # fmt: skip
    elif given.tokens_per_parameter is None:
        raise BadInput("how many tokens? --tokens-per-parameter, or --token-budget", remedy=example())
    else:
        ratio = large(given.tokens_per_parameter, "--tokens-per-parameter", "a ratio", 1e-3, 1e6)
        if parameters is None:
            raise BadInput("--tokens-per-parameter needs --parameters", remedy=example())
        budget = parameters * ratio
    devices = whole(given.devices, "--devices", "a number of devices", MOST_DEVICES) if given.devices else 1
    efficiency = 1.0
    if given.scaling_efficiency is not None:
        remedy = example("--devices 2", "--scaling-efficiency 0.9")
        efficiency = part(given.scaling_efficiency, "--scaling-efficiency", "a part", whole_too=True, remedy=remedy)
    return Goal(budget, time, parameters, ratio, devices, efficiency, _overheads(given), _attention(given))


def _overheads(given: argparse.Namespace) -> tuple[Overhead, ...]:
    from campaign.feasibility.found import OTHER, PERIODIC, Overhead
    from campaign.feasibility.quantities import example, part

    found = []
    for item, option in ((OTHER, "--overhead"), *((one, f"--{one}-share") for one in PERIODIC)):
        text = getattr(given, option[2:].replace("-", "_"))
        if text is not None:
            said = "a share of the wall time"
            found.append(Overhead(item, part(text, option, said, remedy=example(f"{option} 3%"))))
    if sum(one.share_of_wall_time for one in found) >= 1:
        raise BadInput("the shares of the wall time leave none to training: below 1 together", remedy=example())
    return tuple(found)


def _attention(given: argparse.Namespace) -> Attention | None:
    from campaign.feasibility.found import Attention
    from campaign.feasibility.quantities import example, large, whole

    asked = (given.context, given.layers, given.width)
    if all(one is None for one in asked):
        return None
    remedy = example("--context 2048", "--layers 24", "--width 2048")
    if any(one is None for one in asked):
        raise BadInput("attention's operations need --context, --layers and --width: all three or none", remedy=remedy)
    return Attention(
        context_tokens=large(given.context, "--context", "tokens of context", 1, 1e9, remedy=remedy),
        layers=whole(given.layers, "--layers", "the layers that attend", 100_000, remedy=remedy),
        width=large(given.width, "--width", "heads times the size of a head", 1, 1e7, remedy=remedy),
    )


def _rate(given: argparse.Namespace) -> Rate | None:
    from campaign.feasibility.found import Rate
    from campaign.feasibility.quantities import large

    if given.tokens_per_second is None:
        return None
    value = large(given.tokens_per_second, "--tokens-per-second", "tokens a second of one device", 1e-3, MOST_RATE)
    return Rate("given", value, "", GIVEN)


def _precision(given: argparse.Namespace) -> str:
    from campaign.errors import UnknownName
    from campaign.feasibility.peaks import PRECISIONS
    from campaign.feasibility.quantities import example

    precision = (given.precision or "bf16").lower()
    if precision not in PRECISIONS:
        raise UnknownName("precision", given.precision, PRECISIONS, remedy=example("--device h100 --precision bf16"))
    return precision


def _roofs(given: argparse.Namespace, precision: str) -> list[Roof]:
    from campaign.feasibility.found import Roof
    from campaign.feasibility.peaks import roof
    from campaign.feasibility.quantities import example, large

    found = [roof(given.device, precision)] if given.device is not None else []
    if given.peak is not None:
        said, remedy = "operations a second of one device", example("--peak 989.5T")
        peak = large(given.peak, "--peak", said, 1e6, 1e21, remedy=remedy)
        found.append(Roof("--peak", precision, peak, None, "given", GIVEN))
    return found


def _measured(device: str, precision: str, campaign: str) -> Roof:
    """The device's rates, taken in a fresh process under its lease. Raises CampaignError."""
    from campaign import lease
    from campaign.executor.peaks import run_peaks
    from campaign.feasibility.found import Roof
    from campaign.feasibility.quantities import example
    from campaign.machine import HERE, gpu

    if not device:
        try:
            gpu.ask(HERE, "-L")
            device = "cuda"
        except gpu.NoAnswer:
            device = "cpu"
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not (kind == "cuda" and number.isdigit())):
        raise BadInput(f"--measure {device}: cpu, cuda or cuda:N", remedy=example("--measure cpu"))
    print(f"measuring a {precision} matmul and a copy on {device}", file=sys.stderr, flush=True)
    with lease.hold(device, holder=campaign):
        reply = run_peaks(device, precision)
    return Roof(
        name=str(reply["device_name"]),
        precision=precision,
        flops_per_second=float(reply["flops_per_second"]),
        dram_bytes_per_second=float(reply["dram_bytes_per_second"]),
        kind="measured",
        source=f"a {reply['size']} x {reply['size']} product and a copy here, torch {reply['torch']}",
    )


def _answered(given: argparse.Namespace, goal: Goal, rate: Rate | None, roofs: list[Roof]) -> Feasibility:
    """The answer with what the ledger has. Raises BadInput where neither it nor the command line has a rate."""
    from campaign.feasibility import recorded
    from campaign.feasibility.quantities import example
    from campaign.feasibility.verdict import judge

    ledger = _ledger(given.campaign)
    if ledger is None:
        if rate is None:
            raise BadInput("no tokens a second: none given, and no ledger here", remedy=example())
        return judge(goal, [rate], roofs)
    with ledger:
        decisions, stack = ledger.decision_rows(), ledger.stack_rows()
        found, notes = ([rate], []) if rate else recorded.rates(ledger.finding_rows(), decisions, stack)
        place = ledger.place()
        diagnosis = None if given.without_diagnosis else ledger.last_diagnosis(place[0] if place else None)
        for notice in ledger.notices:
            print(notice, file=sys.stderr)
    if not found:
        said = f"no tokens a second: none given, and campaign {given.campaign!r} has measured none"
        raise BadInput(said, remedy=example())
    return judge(goal, found, roofs, diagnosis, decisions, stack, notes)


def _ledger(campaign: str) -> Ledger | None:
    """The ledger of `campaign`, None outside a project and before the default one has begun. Raises UnknownName."""
    try:
        root = project_root()
    except NotAProject:
        return None
    from campaign.ledger import LEDGER_FILE, open_ledger

    if campaign == DEFAULT_CAMPAIGN and not (campaign_folder(root, campaign) / LEDGER_FILE).is_file():
        return None
    return open_ledger(root, campaign, writable=False)


def _write(given: argparse.Namespace, found: Feasibility) -> None:
    answer: Any
    if given.json:
        from campaign.report.feasibility_text import feasibility_json

        answer = feasibility_json(found)
    elif given.export:
        from campaign.report.feasibility_text import feasibility_page

        answer = feasibility_page(found, given.export)
    else:
        from campaign.report.feasibility_text import feasibility_text

        answer = feasibility_text(found, terminal=sys.stdout.isatty())
    write(answer, given.out)
