"""A real HBase on this machine, to try things out: ZooKeeper, a master and region servers, each a
process of its own, with all data in one directory.
"""

from belvedere.stores.hbase.local.cluster import Cluster, LocalProcess
from belvedere.stores.hbase.local.user_table import create_table

__all__ = ["Cluster", "LocalProcess", "create_table"]
