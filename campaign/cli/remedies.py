"""What to type next, as whole commands. An error says its remedy where it is raised, often as a fragment ("--on root",
"protocol.pairs=20"), since nothing below the front door knows the command line; here it becomes the command that was
typed, with that in it.

How a remedy is written: a command ends at ", ", "; ", " (" or two spaces, alternatives are joined by ", or ". Words in
capitals (NAME, VALUE) are the person's to fill in.
"""

from __future__ import annotations

import re
import shlex

from campaign.cli.completion import FILES, GROUPS, NOTHING, RUN, options_of, words_of
from campaign.cli.verbs import VERBS
from campaign.errors import CampaignError, UnknownName

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a refusal its start
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENDS = re.compile(r", |; | \(|  |$")
# Programs of others that a remedy may name.
PROGRAMS = ("df", "ls", "git", "pip", "head", "mv", "nsys", "ncu", "python", "export", "nvidia-smi", "sudo")
PROGRAM = re.compile(rf"(?:^|[:;,] |then |and |or )(?=(?:{'|'.join(PROGRAMS)}|[A-Z]+=\S+ campaign) )")
CAMPAIGN = re.compile(r"(?<![\w./'\"-])campaign(?=$|[,;] |  | (?=[a-z+~'-]))")
FRAGMENT = re.compile(r"(?:(?P<lead>[a-z][^:=]*): )?(?P<words>(?:-m |--\w|'?\+{0,2}[A-Za-z_][\w./]*=).*)", re.DOTALL)
OVERRIDE = re.compile(r"'?[~+]{0,2}(?P<key>[A-Za-z_][\w./@]*)(?:=|$)")
LESS = ("leave ", "name ", "keep ")  # what the same command with something added would not do


def next_step(error: CampaignError, words: Sequence[str]) -> str:
    """The remedy of an error that the command line `words` (without the program) met, with the next command in it."""
    remedy = error.remedy
    if spelled := _spelled_right(error, words):
        return spelled
    if not remedy:
        return _help(words)
    if commands(remedy) or PROGRAM.search(remedy):
        return remedy
    for alternative in _alternatives(remedy):
        if said := _with(alternative, error, words):
            return said
    if remedy.startswith(LESS):
        return f"{remedy}; see: {_help(words)}"
    about = f"{error.message} {remedy}"
    return f"{remedy}; then: {shown([word for word in words if not _named(word, about)])}"


def shown(words: Sequence[str]) -> str:
    """The command line as it can be typed."""
    return " ".join(["campaign", *map(_quoted, words)])


def commands(remedy: str) -> list[list[str]]:
    """The words of each `campaign` command in a remedy, without the program."""
    found = []
    for place in CAMPAIGN.finditer(remedy):
        rest = remedy[place.end() :].removeprefix(" ")
        try:
            words = shlex.split(rest[: _end(rest)])
        except ValueError:
            continue
        if not words or words[0] in (*VERBS, "run") or "=" in words[0] or words[0][0] in "-~":
            found.append(words)
    return found


def _end(text: str) -> int:
    """Where a command ends: the first end of one that is not within quotes."""
    quoted = [match.span() for match in re.finditer(r"'[^']*'|\"[^\"]*\"", text)]
    return next(end.start() for end in ENDS.finditer(text) if not any(a < end.start() < b for a, b in quoted))


def _spelled_right(error: CampaignError, words: Sequence[str]) -> str:
    """The command line with the nearest name in place of the one that there is not; '' where there is none near."""
    if not isinstance(error, UnknownName) or not error.near:
        return ""
    bounds = rf"(?<![\w.-]){re.escape(error.name)}(?![\w-])"
    found = [place for place, word in enumerate(words) if re.search(bounds, word)]
    if len(found) != 1:
        return ""
    fixed = list(words)
    fixed[found[0]] = re.sub(bounds, lambda _: str(error.near), words[found[0]], count=1)
    # `+` adds a key that is not there, and the right one may be there: `++` sets either.
    fixed[found[0]] = re.sub(r"^\+(?!\+)", "++", fixed[found[0]])
    return shown(fixed)


def _help(words: Sequence[str]) -> str:
    return " ".join(["campaign", *(words[:1] if words and words[0] in (*VERBS, "run") else []), "--help"])


def _alternatives(remedy: str) -> Iterator[re.Match[str]]:
    """The fragments of a remedy: the whole, or what follows an `or` where that cannot be typed here."""
    for start in (0, *(place.end() for place in re.finditer(r", or ", remedy))):
        if fragment := FRAGMENT.fullmatch(remedy[start:]):
            yield fragment


def _with(fragment: re.Match[str], error: CampaignError, words: Sequence[str]) -> str:
    """The typed command with the fragment's options and overrides in place of its own, and its prose beside; '' where
    the verb does not take them."""
    verb = words[0] if words and words[0] in VERBS else ""
    values = options_of(verb) if verb else RUN
    new, rest = _taken(fragment["words"], values)
    overrides = not verb or words_of(verb) not in (NOTHING, FILES)
    takes = [head in values if head.startswith("-") else overrides for head in _heads(new, values)]
    if not takes or not all(takes):
        return ""
    kept = _without(words, new, values, error)
    new = [word for word in new if word != "-m" or "-m" not in kept]
    first = 1 if kept[:1] and kept[0] in (*VERBS, "run") else 0
    line = [*kept[:first], "-m", *kept[first:], *new[1:]] if new[:1] == ["-m"] else [*kept, *new]
    aside = "; ".join(part for part in (fragment["lead"], rest) if part)
    return shown(line) + (f"    ({aside})" if aside else "")


def _heads(new: Sequence[str], values: dict[str, str]) -> Iterator[str]:
    """Options and overrides without the options' values."""
    return (word for before, word in zip(("", *new), new, strict=False) if not values.get(before))


def _without(words: Sequence[str], new: Sequence[str], values: dict[str, str], error: CampaignError) -> list[str]:
    """What was typed less what the new words replace, and less the override that the message is about."""
    keys = {_key(word) for word in _heads(new, values)}
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif _key(word) in keys:
            skip = bool(values.get(word))
        elif not _wrong(word, keys, error):
            kept.append(word)
    return kept


def _wrong(word: str, keys: set[str], error: CampaignError) -> bool:
    key = _key(word)
    if key == word and not word.startswith("~"):
        return f"{word!r} is not" in error.message
    if "@" in key or (key not in GROUPS and any(one.startswith(f"{key}.") for one in keys)):
        return True
    about_it = re.match(rf"{re.escape(key)}(:| =| must)", error.message) is not None
    return about_it or (isinstance(error, UnknownName) and _named(word, error.message))


def _named(word: str, text: str) -> bool:
    """Whether a text names the key of this override; groups are named all the time."""
    key = _key(word)
    if key == word or key in GROUPS:
        return False
    return re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", text) is not None


def _key(word: str) -> str:
    if word.startswith("-"):
        return word.split("=", 1)[0]
    found = OVERRIDE.match(word)
    return found["key"] if found and ("=" in word or word.startswith("~")) else word


def _taken(text: str, values: dict[str, str]) -> tuple[list[str], str]:
    """The options and overrides at the beginning of a text, and the prose after them."""
    tokens = list(_tokens(text))
    new: list[str] = []
    place, ended = 0, False
    while place < len(tokens) and not ended:
        word, mark = tokens[place]
        if not (word.startswith("-") or ("=" in word and OVERRIDE.match(word))):
            break
        new.append(word)
        if values.get(word) and not mark and place + 1 < len(tokens):  # the option's value
            place += 1
            word, mark = tokens[place]
            new.append(word)
        place, ended = place + 1, bool(mark)
    return new, " ".join(word + mark for word, mark in tokens[place:]).strip("()")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Words as a shell would pass them on, brackets kept whole, each with the comma or semicolon after it."""
    for match in re.finditer(r"(?:'[^']*'|\[[^\]]*\]|\{[^}]*\}+|[^\s'\[{])+", text):
        word = match[0].rstrip(",;")
        mark = match[0][len(word) :]
        yield re.sub(r"^(|[^'\[{]*=)'([^']*)'$", r"\1\2", word), mark


def _quoted(word: str) -> str:
    """A word for a shell: bare where no shell touches it, in double quotes where it holds single ones."""
    if re.fullmatch(r"[\w.,=:/@%+-]+", word):
        return word
    return f'"{word}"' if "'" in word and not re.search(r'["$`\\!]', word) else shlex.quote(word)
