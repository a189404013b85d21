"""Real databases on this machine, to try sources out: each a process of its own, on loopback, with
all its data in one directory.
"""

from belvedere.sources.servers.mariadb import MariaDBServer
from belvedere.sources.servers.postgres import PostgresServer
from belvedere.sources.servers.process import Address, Server

__all__ = ["Address", "MariaDBServer", "PostgresServer", "Server"]
