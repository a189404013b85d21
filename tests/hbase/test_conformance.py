"""The contract's tests of catalog and state tables, on HBase.

Those for stores with slot transactions are left out, as for the rows in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.stores.base import Store
from belvedere.stores.hbase.local import Cluster
from tests.conformance.test_stores import (  # noqa: F401  # run here with another store
    LAST_TABLE,
    test_a_body_that_raises_writes_nothing,
    test_a_catalog_read_is_one_snapshot,
    test_a_catalog_value_may_have_almost_a_megabyte,
    test_a_dropped_state_table_is_gone_and_others_stay,
    test_a_late_attempt_changes_nothing_once_the_floor_has_reached_its_epoch,
    test_a_reader_does_not_see_the_epoch_that_is_being_written,
    test_a_reader_stays_where_it_is_while_epochs_pass,
    test_a_retry_of_an_epoch_after_collecting_the_one_before_reads_the_same,
    test_a_table_is_written_at_most_once_per_shard,
    test_a_transaction_sees_its_own_writes_and_is_there_afterwards,
    test_a_write_may_be_empty_or_sliced,
    test_an_attempt_completes_the_tables_that_another_one_has_not_written,
    test_an_attempt_reads_as_of_the_epoch_before,
    test_an_empty_value_is_not_an_absent_one,
    test_an_epoch_may_skip_a_slot,
    test_another_attempt_of_the_epoch_changes_nothing,
    test_counts_are_those_of_the_newest_records,
    test_lazy_scans_go_on_while_another_attempt_of_the_epoch_commits,
    test_many_keys_are_found_in_the_order_in_which_they_are_asked_for,
    test_nothing_is_written_before_the_commit_or_without_it,
    test_prefix_scans_give_the_records_of_each_prefix_and_its_number,
    test_prefix_scans_go_on_while_another_attempt_of_the_epoch_commits,
    test_readers_see_every_epoch_that_is_kept,
    test_reads_are_the_same_before_during_and_after_another_attempt_of_the_epoch,
    test_scans_start_at_the_first_or_last_record_of_a_range,
    test_slots_are_apart,
    test_sync_can_be_called_at_any_time,
    test_the_mark_of_a_catalog_changes_with_every_transaction_and_only_then,
    test_the_shapes_of_tables_can_be_told_any_number_of_times,
    test_writing_in_a_catalog_read_raises,
)
from tests.hbase.stores import open_new

pytestmark = pytest.mark.hbase


@pytest.fixture
def store(cluster: Cluster) -> Iterator[Store]:
    made = open_new(cluster, (*range(1, 20), LAST_TABLE))
    yield made
    made.close()
