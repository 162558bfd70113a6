"""The libraries of sign-in. Each loads when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import jwt as jwt
    from jwt.exceptions import InvalidTokenError as InvalidTokenError
    from jwt.exceptions import PyJWKError as PyJWKError

    Argon2Error: Any = "argon2.exceptions:Argon2Error"
    InvalidHashError: Any = "argon2.exceptions:InvalidHashError"
    PasswordHasher: Any = "argon2:PasswordHasher"
    low_level: Any = "argon2.low_level"
else:
    __getattr__ = lazy_names(__name__)
