"""Every case that a review found has a test, and the page says which."""

from tools.reliability_doc import PAGE, find_tests, read_cases, update_page


def test_every_case_has_a_test() -> None:
    cases, tests = read_cases(), find_tests()
    assert len(cases) >= 54
    sections = {case.partition(".")[0] for case in cases}
    assert set(tests) <= set(cases) | sections
    assert [case for case in cases if case not in tests] == []


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert page == update_page(page), "run `make docs`"
