"""What callbacks of the event loop run in, where they begin what tasks do."""

import contextvars
import sys

__all__ = ["callback_context"]


def callback_context() -> contextvars.Context:
    """A copy of this context, in which AnyIO knows its loop outside of tasks too.

    Where `sniffio` is installed, AnyIO asks that alone, which finds asyncio in tasks and not in
    callbacks; libraries of models bring it.
    """
    context = contextvars.copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context
