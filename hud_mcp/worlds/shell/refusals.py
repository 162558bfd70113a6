"""What a shell says where something cannot be done with its files, and whose doing that is."""

import errno

__all__ = ["AGENTS", "refusal"]

AGENTS = frozenset({
    errno.EACCES, errno.EDQUOT, errno.EEXIST, errno.EFBIG, errno.EINVAL, errno.EISDIR,
    errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.ENOTEMPTY,
    errno.ENXIO, errno.EPERM, errno.ESTALE, errno.ETXTBSY, errno.EXDEV,
})  # fmt: skip
"""What only the state of the folder gives, which is the agent's; others are the machine's."""
_CLOSED = (errno.EACCES, errno.EPERM)


def refusal(exc: OSError, path: str, root: str) -> str:
    """Say why something cannot be done, and what to do instead.

    Args:
        exc: What the system said.
        path: What it was to be done with; empty for the folder.
        root: The folder.
    """
    named = path or "The folder"
    if exc.errno == errno.EXDEV:
        return f"{named} is not in {root}, or a link on its way leads out of it. Use a path in it."
    if exc.errno == errno.ENOENT:
        return f"{named} is not there. List the folder to see what is."
    if exc.errno in _CLOSED and named in ("The folder", root, "."):
        return f"{root} cannot be entered or read: {exc.strerror}. Run `chmod u+rwx {root}`."
    if exc.errno in (errno.ENOSPC, errno.EFBIG):
        why = exc.strerror if exc.errno == errno.EFBIG else "there is no room left in the folder"
        return f"{named}: {why}. Remove what is not needed, or use a part of it."
    return f"{named}: {exc.strerror or exc}."
