"""Where a password comes from. Only its origin is ever shown, kept or compared."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping

from ceph_tuner.core.errors import InputError, PermissionRefused

ORIGINS = ("env", "file", "keyring")
LARGEST = 4096


@dataclass(frozen=True)
class Secret:
    """A password by its origin: an environment variable, a file, or an entry of the system's keyring."""

    origin: str
    name: str
    """The variable, the path, or the keyring's service."""
    user: str = ""
    """Whose entry of the keyring."""
    place: str = "password"

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS or not self.name:
            raise ValueError(f"a password comes from one of {', '.join(ORIGINS)} (={self.origin!r})")

    def read(self, environment: Mapping[str, str] = os.environ) -> str:
        """Fetch it. Raises InputError, PermissionRefused; neither holds any of its characters."""
        if self.origin == "env":
            text = environment.get(self.name, "")
            where = f"nothing in the environment variable {self.name}"
        elif self.origin == "file":
            text, where = self._from_file(), f"nothing in the first line of {self.name}"
        else:
            text, where = self._from_keyring(), f"no entry {self.name} of {self.user} in the keyring"
        if not text:
            raise InputError(self.place, where, "the password there")
        return text

    def _from_file(self) -> str:
        path = Path(self.name)
        try:
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode):
                raise InputError(self.place, f"{path}, which is no regular file", "a file with the password")
            if stat.S_IMODE(mode) & 0o077:
                raise PermissionRefused(
                    self.place, f"{path}, which others may read ({stat.S_IMODE(mode):04o})", f"`chmod 600 {path}`"
                )
            with path.open(encoding="utf-8") as stream:
                return stream.readline(LARGEST).rstrip("\r\n")
        except FileNotFoundError:
            raise InputError(self.place, f"no file {path}", "a file with the password") from None
        except UnicodeDecodeError:
            # its own words would show bytes of the password
            raise InputError(self.place, f"{path}, which is no UTF-8", "text") from None
        except OSError as error:
            raise PermissionRefused(self.place, f"{path}: {error.strerror}", "a readable file") from None

    def _from_keyring(self) -> str:
        try:
            import keyring
            from keyring.errors import KeyringError
        except ImportError:
            raise InputError(
                self.place, "no Python package `keyring`", "it installed (pip install keyring), or env or file"
            ) from None
        try:
            return keyring.get_password(self.name, self.user) or ""
        except KeyringError as error:
            raise InputError(
                self.place,
                f"a keyring that does not answer ({type(error).__name__})",
                "an unlocked one, or env or file",
            ) from None
