"""Cases 92 to 99: threads, processes, interruptions and the store."""

from __future__ import annotations

from faults.rows import Elsewhere, Entry

ROWS: tuple[Entry, ...] = (
    Elsewhere(
        numbers=(92,),
        tests=(
            "client/test_robustness.py::test_many_threads",
            "transport/test_connections.py::test_threads",
        ),
    ),
    Elsewhere(
        numbers=(93,),
        tests=(
            "client/test_robustness.py::test_fork_after_use",
            "transport/test_connections.py::test_fork",
            "transport/test_async_transports.py::test_fork",
        ),
    ),
    Elsewhere(
        numbers=(94,),
        tests=(
            "trio_client/test_cancellation.py::test_create",
            "trio_client/test_cancellation.py::test_create_on_a_socket",
            "trio_client/test_cancellation.py::test_run",
            "batch/test_runs.py::test_a_cancelled_run_keeps_what_it_paid_for",
        ),
    ),
    Elsewhere(
        numbers=(95,),
        tests=(
            "client/test_interrupts.py::test_ctrl_c_during_a_create",
            "client/test_interrupts.py::test_ctrl_c_during_a_create_that_goes_wrong",
            "client/test_interrupts.py::test_ctrl_c_right_after_a_create",
            "trio_client/test_ctrl_c.py::test_many_creates_at_once",
            "faults/test_concurrency.py::test_ctrl_c_at_every_line",
            "faults/test_concurrency.py::test_ctrl_c_from_the_beginning",
            "faults/test_concurrency.py::test_a_second_ctrl_c_at_every_line",
        ),
    ),
    Elsewhere(
        numbers=(96,),
        tests=(
            "purchases/test_items.py::test_an_item_is_claimed_and_armed_at_once",
            "batch/test_runs.py::test_two_runners_share_a_batch",
            "batch/test_kills.py::test_kills",
        ),
    ),
    Elsewhere(
        numbers=(97,),
        tests=(
            "purchases/test_files.py::test_damage_where_nobody_reads",
            "batch/test_runs.py::test_the_store_is_full",
            "batch/test_runs.py::test_a_store_that_cannot_be_written",
        ),
    ),
    Elsewhere(
        numbers=(98,),
        tests=(
            "batch/test_runs.py::test_a_reply_finds_the_store_locked",
            "batch/test_runs.py::test_no_room_for_a_reply",
            "batch/test_runners.py::test_a_kept_reply_is_read",
            "batch/test_runners.py::test_a_torn_side_file_is_no_reply",
        ),
    ),
    Elsewhere(
        numbers=(99,),
        tests=("batch/test_runners.py::test_a_runner_is_alive_as_long_as_it_holds_its_lock",),
    ),
)
