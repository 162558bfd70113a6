"""The OpenGL that MuJoCo draws with here, tried in another process, which it may end."""

import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, cast

from platformdirs import user_cache_path

from hud_mcp.plugins.gymnasium import libraries

logger = logging.getLogger(__name__)

OPENGL_VARIABLE = "MUJOCO_GL"
"""The variable of MuJoCo and Gymnasium that names what draws."""

_OFF = ("disable", "disabled", "off", "false", "0")
_BOUND_S = 60.0
_CLIP_CHARS = 160
_ASKED_OF = (OPENGL_VARIABLE, "MUJOCO_EGL_DEVICE_ID", "PYOPENGL_PLATFORM", "CUDA_VISIBLE_DEVICES",
             "DISPLAY", "WAYLAND_DISPLAY", "LD_LIBRARY_PATH", "LIBGL_ALWAYS_SOFTWARE")  # fmt: skip
"""The variables that an answer depends on."""

_PROGRAM = """
import mujoco, numpy
from mujoco.gl_context import GLContext
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><light pos='0 0 3'/><geom type='sphere' size='.3' rgba='1 0 0 1'/>"
    "</worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
context = GLContext(64, 64)
context.make_current()
drawn = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, drawn)
scene, camera = mujoco.MjvScene(model, 10), mujoco.MjvCamera()
mujoco.mjv_defaultFreeCamera(model, camera)
mujoco.mjv_updateScene(
    model, data, mujoco.MjvOption(), None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
view, picture = mujoco.MjrRect(0, 0, 64, 64), numpy.zeros((64, 64, 3), numpy.uint8)
mujoco.mjr_render(view, scene, drawn)
mujoco.mjr_readPixels(picture, None, view, drawn)
if picture.max() == picture.min():
    raise SystemExit("the picture is empty")
print("drawn", flush=True)
"""

_choosing = threading.Lock()
_answers: dict[str, str | None] = {}
"""The answers of this process, by what they depend on: the fault, or None."""


def choose_opengl(*, again: bool = False) -> str | None:
    """Choose the OpenGL that MuJoCo draws with, and name it in MUJOCO_GL; return the fault or None.

    A value that the user has set stays, and is tried alone. `again` is for a new installation.
    """
    with _choosing:  # each try is a process, and one answer is for all
        asked = _dependencies()
        if again or asked not in _answers:
            _answers[asked] = _choose()
            # By the value that was chosen, too: the next call sees it as set.
            _answers.setdefault(_dependencies(), _answers[asked])
        return _answers[asked]


def load_mujoco(*, draws: bool) -> None:
    """Load MuJoCo, with drawing off unless MUJOCO_GL names a library that draws: others end it."""
    if "mujoco" in sys.modules:
        return
    given = os.environ.get(OPENGL_VARIABLE)
    if not draws:
        os.environ[OPENGL_VARIABLE] = _OFF[0]
    try:
        mujoco = libraries.mujoco
    finally:
        if given is not None:
            os.environ[OPENGL_VARIABLE] = given
        elif not draws:
            del os.environ[OPENGL_VARIABLE]
    # By default it prints them, and leaves a file where the server runs.
    mujoco.set_mju_user_warning(_note)


def _note(text: str) -> None:
    logger.debug("MuJoCo warns: %s", text)


def _choose() -> str | None:
    given = os.environ.get(OPENGL_VARIABLE, "").strip().lower()
    if given in _OFF:
        return f"{OPENGL_VARIABLE}={given} turns drawing off."
    cached = _Cache()
    if (known := cached.read()) is not None:
        os.environ[OPENGL_VARIABLE] = known
        return None
    faults: list[str] = []
    for backend in (given,) if given else _backends():
        fault = _try(backend)
        if fault is None:
            cached.write(backend)
            os.environ[OPENGL_VARIABLE] = backend
            return None
        faults.append(f"{backend}: {fault}")
    if given:
        told = faults[0].removeprefix(f"{given}: ")
        return f"{OPENGL_VARIABLE}={given} draws nothing here ({told}). Unset it to try others."
    return f"MuJoCo finds no OpenGL that draws here ({'; '.join(faults)})."


def _backends() -> tuple[str, ...]:
    return ("egl", "osmesa", "glfw") if sys.platform.startswith("linux") else ("glfw",)


def _try(backend: str) -> str | None:
    """Draw a ball, and return the fault; None if it worked."""
    # MuJoCo leaves a log of its errors where it runs.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            done = subprocess.run(  # noqa: S603  # this interpreter
                [sys.executable, "-c", _PROGRAM], env={**os.environ, OPENGL_VARIABLE: backend},
                cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=_BOUND_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"nothing is drawn within {_BOUND_S:g} s"
        except OSError as exc:
            return str(exc)
    if done.returncode == 0 and done.stdout.endswith("drawn\n"):
        return None
    if done.returncode < 0:
        return f"signal {-done.returncode} ends the process"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1][:_CLIP_CHARS].rstrip(".") if lines else f"status {done.returncode}"


class _Cache:
    """The backend that draws here, in a file: a process that starts need not try it again."""

    def __init__(self) -> None:
        self._key = hashlib.sha256(_dependencies(on_disk=True).encode()).hexdigest()
        self._file = user_cache_path("hud-mcp") / "opengl.json"

    def read(self) -> str | None:
        """Return the answer; None if the file has none for this machine."""
        try:
            kept: Any = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return None
        own = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
        backend = own.get("backend") if own.get("of") == self._key else None
        return backend if backend in _backends() else None

    def write(self, backend: str) -> None:
        """Keep an answer, if that is possible."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            kept = self._file.with_suffix(f".{os.getpid()}")
            kept.write_text(json.dumps({"of": self._key, "backend": backend}), encoding="utf-8")
            kept.replace(self._file)
        except OSError:
            return  # it is tried again the next time


def _dependencies(*, on_disk: bool = False) -> str:
    """Return the state that an answer depends on: variables, and for the file the software too."""
    parts = [f"{name}={os.environ.get(name, '')}" for name in _ASKED_OF]
    if on_disk:
        # The linker's cache is written anew with each library that is installed or removed.
        parts += [sys.prefix, sys.version]
        parts += [_stamp(Path(each)) for each in ("/etc/ld.so.cache", "/dev/dri", "/etc/hostname")]
        parts += [_stamp(Path(each) / "mujoco") for each in sys.path if each]
    return "\n".join(parts)


def _stamp(path: Path) -> str:
    try:
        return f"{path}={path.stat().st_mtime_ns}"
    except OSError:
        return ""
