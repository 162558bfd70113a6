"""Public sets of tasks by the names that people know, and how to get each: none is shipped."""

__all__ = ["how_to_get"]

_PUBLISHED = {
    "osworld": (
        "OSWorld, tasks on an Ubuntu desktop",
        "evaluation_examples of github.com/xlang-ai/OSWorld",
    ),
    "gaia": (
        "GAIA, questions that take tools and the web",
        "the data set gaia-benchmark/GAIA on Hugging Face, to those who accept its terms",
    ),
    "webvoyager": (
        "WebVoyager, tasks on live web sites",
        "data/WebVoyager_data.jsonl of github.com/MinorJerry/WebVoyager",
    ),
}


def how_to_get(name: str) -> str | None:
    """How to get a public set, or a part of one such as `GAIA-validation`; None for other names."""
    plain = name.casefold()
    for known, (what, where) in _PUBLISHED.items():
        rest = plain.removeprefix(known)
        if rest != plain and not rest[:1].isalnum():
            return (
                f"{name!r} is {what}. It does not come with this package; it is published as "
                f"{where}. Write its rows to {name}.jsonl in the working folder, and this name "
                "loads them."
            )
    return None
