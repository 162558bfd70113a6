"""What is known of reasoning-gym's generators and verifiers, each found out on version 0.1.25."""

import ast
import re
import warnings

__all__ = ["FORMULAS", "LITERALS", "NO_REFERENCE", "PINNED", "REFUSED", "is_program"]

PINNED = frozenset(
    {"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"}
)
"""They follow the order of sets, which their process fixes; without that they would not repeat."""

REFUSED = {"composite": "it is made of other generators; name one of these"}
"""Those that draw nothing by themselves, and why."""

NO_REFERENCE = frozenset(
    {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
)
"""They have a verifier, and no answer of their own."""

LITERALS = frozenset({"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"})
"""Their verifiers evaluate an answer as Python, to read a list."""

FORMULAS = frozenset(
    {
        "countdown",
        "intermediate_integration",
        "polynomial_multiplication",
        "puzzle24",
        "simple_integration",
    }
)
"""Their verifiers have SymPy read an answer, which evaluates it as Python."""

_MATHS = {
    *("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "exp", "log", "ln", "sqrt", "cbrt", "abs", "Abs"),
}
_FORMULA = re.compile(r"[A-Za-z0-9_+\-*/^().,!\s]*")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_HIDDEN = re.compile(r"__|\)\s*\(|\.\s*[A-Za-z_]|\n")
_PLAIN = (
    *(ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Name, ast.Load),
    *(ast.UnaryOp, ast.USub, ast.UAdd, ast.BinOp, ast.Sub),
)
"""What a list of numbers and letters is made of; `1 -2` is a difference, and harmless."""


def is_program(dataset: str, answer: str) -> bool:
    """Whether a verifier that evaluates answers would run what an answer has in it.

    Such an answer is never handed to the verifier: it would run as the server's user, and could
    write its own score.

    Args:
        dataset: The generator.
        answer: What was submitted.
    """
    answer = answer.strip()
    if dataset in FORMULAS:
        names = set(_CALLED.findall(answer))
        return not _FORMULA.fullmatch(answer) or bool(_HIDDEN.search(answer)) or not names <= _MATHS
    if dataset not in LITERALS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of how an answer is written
            tree = ast.parse(answer, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False  # nor does the verifier evaluate it
    return not all(isinstance(node, _PLAIN) for node in ast.walk(tree))
