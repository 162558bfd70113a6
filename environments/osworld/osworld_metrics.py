"""How OSWorld's rows compare a result with what is expected, by its published rules.

Each takes a result (a text, or a file's content) and rules, and returns a score from 0 to 1.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from osworld_slides import compare_pptx_files
from osworld_table import compare_table
from osworld_words import compare_docx_files, compare_pdfs

__all__ = ["METRICS"]


def text_of(result: Any) -> str:
    """A result as a text."""
    return result.decode("utf-8", "replace") if isinstance(result, bytes) else str(result)


def exact_match(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether the result is the expected text, with its newlines."""
    return float(text_of(result) == rules["expected"])


def literal_match(result: Any, expected: Any, **options: Any) -> float:
    """Whether both are the same text, or lists of the same texts; case may not count."""
    if options.get("type") == "list":
        if not isinstance(result, list) or len(result) != len(expected):
            return 0.0
        return float(all(
            literal_match(one, other, ignore_case=options.get("ignore_case"))
            for one, other in zip(result, expected, strict=True)
        ))  # fmt: skip
    both = [text_of(result), text_of(expected)]
    if options.get("ignore_case"):
        both = [each.lower() for each in both]
    return float(both[0] == both[1])


def is_in_list(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether the expected item is in the result."""
    return float(rules["expected"] in (result if isinstance(result, list) else text_of(result)))


def check_include_exclude(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether every included text is there, and no excluded one."""
    text = text_of(result)
    included = all(each in text for each in rules.get("include", ()))
    return float(included and not any(each in text for each in rules.get("exclude", ())))


def check_list(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether every expected pattern is in a line, and no unexpected one in any."""
    lines = text_of(result).splitlines()
    wanted = [re.compile(each) for each in rules.get("expect", ())]
    unwanted = [re.compile(each) for each in rules.get("unexpect", ())]
    if any(pattern.search(line) for pattern in unwanted for line in lines):
        return 0.0
    return float(all(any(pattern.search(line) for line in lines) for pattern in wanted))


def check_direct_json_object(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether an object has the expected values; or, as the rules say, has them inside of its.

    Of several that may be inside, one has to be.
    """
    found = parsed(result)
    if not isinstance(found, dict):
        return 0.0
    inside = rules.get("expect_in_result", False)
    for name, wanted in rules["expected"].items():
        value = found.get(name)
        if not inside:
            if value != wanted:
                return 0.0
            continue
        if isinstance(wanted, list):
            if not isinstance(value, list) or not any(each in value for each in wanted):
                return 0.0
        elif not isinstance(value, str | list | dict) or wanted not in value:
            return 0.0
    return 1.0


def parsed(result: Any) -> Any:
    """A result as JSON; one in Python's quotes too. None where it is none."""
    if not isinstance(result, str | bytes):
        return result
    for text in (text_of(result), text_of(result).replace("'", '"')):
        try:
            return json.loads(text)
        except ValueError:
            continue
    return None


def check_json_settings(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether a file of settings has the expected ones."""
    found = parsed(result)
    if not isinstance(found, dict):
        return 0.0
    return float(all(found.get(name) == value for name, value in rules["expected"].items()))


def compare_text_file(result: Any, expected: Any, **options: Any) -> float:
    """Whether two files have one text; blanks or case may not count."""
    both = ["\n".join(re.split("\r\n?|\n", text_of(each))) for each in (result, expected)]
    if options.get("ignore_blanks"):
        both = [re.sub(r"\s+", " ", re.sub(r"[\t\n]", " ", each).strip()) for each in both]
    if options.get("ignore_case"):
        both = [each.lower() for each in both]
    return float(both[0] == both[1])


def is_utc_0(result: Any) -> float:
    """Whether the zone in the fourth line of `timedatectl status` is at +0000."""
    lines = text_of(result).split("\n")
    return float(len(lines) > 3 and lines[3].endswith("+0000)"))  # noqa: PLR2004  # the fourth


def check_text_enlarged(result: Any) -> float:
    """Whether a scaling factor is above 1."""
    try:
        return float(float(text_of(result)) > 1.0)
    except ValueError:
        return 0.0


def check_gnome_favorite_apps(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether a printed list has the expected items, in any order."""
    found = parsed(text_of(result).strip())
    expected = rules["expected"]
    return float(isinstance(found, list) and len(found) == len(expected)
                 and set(found) == set(expected))  # fmt: skip


def check_moved_jpgs(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether a folder has the expected names in it, and no other."""
    expected = rules["expected"]
    return float(isinstance(result, list) and sorted(result) == sorted(expected))


def is_expected_active_tab(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether a tab shows an address; `www.`, case of the host and a lone slash count nothing."""
    if rules["type"] != "url" or not result:
        return 0.0
    address = result.get("url") if isinstance(result, dict) else text_of(result)
    return float(address is not None and plain_url(address) == plain_url(rules["url"]))


def plain_url(address: str) -> str:
    """An address as the benchmark compares it."""
    parts = urlsplit(address)
    path = "" if parts.path == "/" else parts.path
    host = parts.netloc.lower().replace("www.", "")
    return urlunsplit(parts._replace(scheme=parts.scheme or "http", netloc=host, path=path))


def is_expected_url_pattern_match(result: Any, rules: Mapping[str, Any]) -> float:
    """Whether every expected pattern is found in an address."""
    if not result:
        return 0.0
    address = result.get("url", "") if isinstance(result, dict) else text_of(result)
    return float(all(re.search(pattern, address) for pattern in rules["expected"]))


METRICS: dict[str, Callable[..., float]] = {
    each.__name__: each
    for each in (
        check_direct_json_object,
        check_gnome_favorite_apps,
        check_include_exclude,
        check_json_settings,
        check_list,
        check_moved_jpgs,
        check_text_enlarged,
        compare_docx_files,
        compare_pdfs,
        compare_pptx_files,
        compare_table,
        compare_text_file,
        exact_match,
        is_expected_active_tab,
        is_expected_url_pattern_match,
        is_in_list,
        is_utc_0,
        literal_match,
    )
}
"""By the names that rows have."""
