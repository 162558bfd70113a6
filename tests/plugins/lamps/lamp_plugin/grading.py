"""A grader of answers, which rows name."""


def lamp_names(answer: str, *names: str) -> float:
    """Whether the answer has each of the names."""
    return float(all(name in answer for name in names))
