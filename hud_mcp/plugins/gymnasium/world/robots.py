"""The names of a MuJoCo robot's numbers, read from its model."""

from typing import Any, cast

__all__ = ["THE_REST", "motor_names", "number_names"]

THE_REST = "the rest"
"""The unit of a last entry that stands for all further numbers of an observation."""

_FREE = ("x", "y", "z", "quaternion w", "quaternion x", "quaternion y", "quaternion z")
_FREE_SPEED = ("x", "y", "z", "around x", "around y", "around z")
_BALL = _FREE[3:]
_BALL_SPEED = _FREE_SPEED[3:]
_KINDS = {0: (_FREE, _FREE_SPEED), 1: (_BALL, _BALL_SPEED)}
"""By MuJoCo's kinds of joints: free, and ball. A slide and a hinge have one number each."""
_SLIDE = 2
_JOINT_TRANSMISSIONS = (0, 1)
_MEANINGS = {
    "cinert": "mass and inertia of each body",
    "cvel": "velocity of each body",
    "qfrc_actuator": "force of each motor",
    "cfrc_ext": "outer forces on each body",
}


def motor_names(env: Any) -> tuple[str, ...]:
    """The joint that each number of an action drives; empty if this is not a MuJoCo robot."""
    model = _model(env)
    if model is None or getattr(env.action_space, "shape", None) != (model.nu,):
        return ()
    return tuple(_motor(model, i) for i in range(model.nu))


def number_names(env: Any) -> tuple[tuple[str, str], ...]:
    """Name and unit of each number of an observation, as far as the environment tells its order."""
    model, told = _model(env), getattr(env.unwrapped, "observation_structure", None)
    order = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    if model is None or "skipped_qpos" not in order:
        return ()
    positions, speeds = _joints(model)
    skipped = int(order["skipped_qpos"])
    names = [*positions[skipped : skipped + int(order["qpos"])], *speeds[: int(order["qvel"])]]
    rest = [text for key, text in _MEANINGS.items() if order.get(key)]
    if rest:
        names.append((f"then {', '.join(rest)}", THE_REST))
    return tuple(names)


def _model(env: Any) -> Any:
    model = getattr(env.unwrapped, "model", None)
    return model if type(model).__name__ == "MjModel" else None


def _motor(model: Any, number: int) -> str:
    own = str(model.actuator(number).name)
    is_of_joint = int(model.actuator_trntype[number]) in _JOINT_TRANSMISSIONS
    joint = str(model.joint(int(model.actuator_trnid[number][0])).name) if is_of_joint else ""
    return f"motor of {joint or own or number}"


def _joints(model: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    positions: list[tuple[str, str]] = []
    speeds: list[tuple[str, str]] = []
    for i in range(model.njnt):
        name, kind = str(model.joint(i).name) or f"joint {i}", int(model.jnt_type[i])
        if kind in _KINDS:
            places, ways = _KINDS[kind]
            positions += [(f"{name} {each}", "") for each in places]
            speeds += [(f"{name} velocity {each}", "") for each in ways]
        else:
            unit = "m" if kind == _SLIDE else "rad"
            positions.append((f"{name} {'position' if kind == _SLIDE else 'angle'}", unit))
            speeds.append((f"{name} velocity", f"{unit}/s"))
    return positions, speeds
