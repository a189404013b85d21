"""HBase: state tables, catalog and captured base tables in a cluster of the user's."""
