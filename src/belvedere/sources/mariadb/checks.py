"""What a server must be set to, so that its log has everything that happens to a table."""

from __future__ import annotations

from typing import Any

from belvedere.errors import SourceError
from belvedere.sources.mariadb.settings import rows

# Setting, what it must be, why.
_NEEDED = (
    ("log_bin", ("1", "ON"), "without it there is no log to follow"),
    ("binlog_format", ("ROW",), "other formats log statements instead of rows"),
    ("binlog_row_image", ("FULL",), "other images leave out columns of rows"),
    ("binlog_row_metadata", ("FULL",), "without it the log does not name columns"),
    ("log_bin_compress", ("0", "OFF"), "compressed events cannot be read by the client"),
    ("sync_binlog", ("1",), "else a power loss takes back what was followed"),
    (
        "innodb_flush_log_at_trx_commit",
        ("1", "3"),
        "else a power loss takes back what was followed",
    ),
)


def check_server(connection: Any) -> None:
    """Refuse a server whose log has gaps, with all that is to be set."""
    names = ", ".join(f"@@global.{name}" for name, _, _ in _NEEDED)
    values = rows(connection, f"SELECT {names}")[0]
    wrong = [
        f"{name} = {wanted[-1] if name.startswith('log_bin') else wanted[0]} (it is {found}: {why})"
        for (name, wanted, why), found in zip(_NEEDED, values, strict=True)
        if str(found).upper() not in wanted
    ]
    if wrong:
        raise SourceError(
            "this MariaDB server cannot be followed as it is set up. Set " + "; ".join(wrong)
        )
