"""Every case that a review found has a test, and the page says which."""

from tools.reliability_doc import find_tests, read_cases, update_pages


def test_every_case_has_a_test() -> None:
    cases, tests = read_cases(), find_tests()
    assert len(cases) >= 54
    sections = {case.partition(".")[0] for case in cases}
    assert set(tests) <= set(cases) | sections
    assert [case for case in cases if case not in tests] == []


def test_the_pages_are_up_to_date() -> None:
    assert [path.name for path, page in update_pages().items() if path.read_text() != page] == [], "run `make docs`"
