"""Cases 85 to 91: files."""

from __future__ import annotations

from faults.rows import Elsewhere, Entry

ROWS: tuple[Entry, ...] = (
    Elsewhere(
        numbers=(85,),
        tests=(
            "client/test_downloads.py::test_hostile_names",
            "batch/test_items.py::test_file_names_are_safe_and_unique",
            "faults/test_files.py::test_paths_that_are_none",
            "faults/test_files.py::test_names_of_every_length",
            "faults/test_files.py::test_every_id_has_a_file_of_its_own",
        ),
    ),
    Elsewhere(
        numbers=(86,),
        tests=(
            "client/test_downloads.py::test_a_link_in_the_way",
            "faults/test_files.py::test_what_is_no_file",
            "faults/test_files.py::test_the_part_is_replaced_meanwhile",
        ),
    ),
    Elsewhere(
        numbers=(87,),
        tests=(
            "client/test_downloads.py::test_a_full_disk",
            "client/test_downloads.py::test_a_write_that_fails",
            "faults/test_files.py::test_a_disk_that_fills_up",
            "faults/test_files.py::test_a_call_of_the_system_that_fails",
        ),
    ),
    Elsewhere(
        numbers=(88, 89),
        tests=(
            "client/test_downloads.py::test_changed_in_between",
            "client/test_downloads.py::test_an_odd_answer_to_a_range",
            "core/test_download.py::test_a_200_restarts",
            "core/test_download.py::test_another_part_than_asked_for",
        ),
    ),
    Elsewhere(
        numbers=(90,),
        tests=(
            "client/test_downloads.py::test_two_processes",
            "faults/test_files.py::test_many_at_one_target",
        ),
    ),
    Elsewhere(
        numbers=(91,),
        tests=(
            "client/test_downloads.py::test_killed",
            "client/test_downloads.py::test_killed_as_a_new_version_began",
            "faults/test_files.py::test_killed_at_every_line",
        ),
    ),
)
