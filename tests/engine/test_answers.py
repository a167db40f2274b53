"""Asking a node each operation once, and keeping what it says."""

from pathlib import Path
from typing import Any, cast

from benchctl.engine.answers import AnswerBook, ask, compare_answers
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.results.answers import Answer
from benchctl.track.operations.catalogue import decode_operation
from benchctl.track.operations.search import CompositeAgg, MultiSearch, OneSearch, PaginatedSearch, Search

RANGE = Search(name="range", body={"query": {}})
SORT = Search(name="sort", body={"sort": []})


def book(tmp_path: Path, name: str, **answers: Answer) -> AnswerBook:
    kept = AnswerBook(tmp_path / f"{name}.json")
    for operation in (RANGE, SORT):
        kept.add(operation, answers[operation.name])
    return kept


def test_a_book_is_kept_and_knows_what_is_missing(tmp_path: Path):
    path = tmp_path / "answers.json"
    first = AnswerBook(path)
    first.add(RANGE, Answer(total=3))
    first.save()
    again = AnswerBook(path)
    assert again.get(RANGE) == Answer(total=3)
    assert again.missing([RANGE, SORT]) == [SORT]
    # Another body under the same name is another question.
    assert again.missing([Search(name="range", body={"query": {"x": 1}})]) != []
    path.write_text("{broken", encoding="utf-8")
    assert AnswerBook(path).missing([RANGE]) == [RANGE]


def test_a_book_that_no_file_keeps_is_never_written():
    book = AnswerBook()
    book.add(RANGE, Answer(total=3))
    book.save()
    assert book.get(RANGE) == Answer(total=3)


class Asked:
    """Stands in for a node: keeps what it is asked, and answers with a bare total."""

    def __init__(self) -> None:
        self.params: dict[str, str] = {}
        self.timeout_s = 0.0

    def search(
        self, _index: str, _body: dict[str, Any], params: dict[str, str], timeout_s: float
    ) -> dict[str, Any]:
        self.params, self.timeout_s = params, timeout_s
        return {"hits": {"total": 7, "hits": []}}


def test_an_operation_is_asked_with_the_parameters_that_are_measured():
    params = {"request_cache": False, "rest_total_hits_as_int": True, "stored_fields": ["a", "b"]}
    operation = Search(name="range", request_params=params, request_timeout=5.0)
    node = Asked()
    answer = ask(cast("SearchClient", node), operation, "big5")
    assert node.params == {
        "request_cache": "false",
        "rest_total_hits_as_int": "true",
        "stored_fields": "a,b",
    }
    assert node.timeout_s == 5.0
    assert answer == Answer(total=7)


class Refusing:
    """A client whose node refuses every search with one reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def search(self, *_args: object) -> None:
        raise NodeRequestError("POST /big5/_search", 400, self.reason)


def test_a_wrong_request_is_not_an_operation_that_the_node_lacks(tmp_path: Path):
    lacking = ask(Refusing("Unknown aggregation type [multi_terms]"), RANGE, "big5")
    # As the core builds of Elasticsearch 8.11 say it, of which big5 asks these two.
    for name in ("auto_date_histogram", "multi_terms"):
        reason = f"named_object_not_found_exception: [1:223] unknown field [{name}]"
        assert ask(Refusing(reason), RANGE, "big5") == Answer(unsupported=reason)
    wrong = ask(Refusing("failed to parse date field [yesterday]"), RANGE, "big5")
    assert (lacking.unsupported is None, lacking.failed is None) == (False, True)
    assert (wrong.unsupported is None, wrong.failed is None) == (True, False)
    sort = Answer(total=5)
    books = {
        "es": book(tmp_path, "es", range=wrong, sort=sort),
        "os": book(tmp_path, "os", range=wrong, sort=sort),
    }
    findings = compare_answers([RANGE, SORT], books, "es").findings
    assert [(found.variant, found.kind) for found in findings] == [("es", "failed"), ("os", "failed")]


class Paged:
    """Stands in for a node that answers in the order of its answers, and keeps what it is asked."""

    def __init__(self, *answers: dict[str, Any] | str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def search(
        self, index: str, body: dict[str, Any], params: dict[str, str], _timeout_s: float
    ) -> dict[str, Any]:
        assert not params
        self.asked.append((index, body))
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            raise NodeRequestError("POST /big5/_search", 404, answer)
        return answer


def hits(*values: int) -> dict[str, Any]:
    return {"hits": {"total": {"value": 9}, "hits": [{"sort": [value]} for value in values]}}


def test_of_several_pages_the_first_one_is_asked():
    node = Paged(hits(1, 2), hits(), hits())
    client = cast("SearchClient", node)
    paged = PaginatedSearch(name="p", body={"sort": ["n"]}, results_per_page=2)
    first = ask(client, paged, "big5")
    assert (first.total, first.returned, first.aggregations) == (9, 2, "")
    ask(client, Search(name="s", pages="all", request_params={"scroll": "1m"}), "big5")
    aggregations = {"a": {"composite": {"sources": []}}}
    ask(client, CompositeAgg(name="c", body={"aggs": aggregations}, results_per_page=3), "big5")
    assert node.asked == [
        ("big5", {"sort": ["n"], "size": 2, "track_total_hits": True}),
        ("big5", {"track_total_hits": True}),
        ("big5", {"aggs": {"a": {"composite": {"sources": [], "size": 3}}}, "track_total_hits": True}),
    ]


BATCH = MultiSearch(name="m", searches=(OneSearch({"size": 1}), OneSearch({"size": 2}, index="other")))


def test_of_a_batch_every_search_is_asked():
    node = Paged(hits(1), {**hits(2, 3), "aggregations": {"a": 1}})
    answer = ask(cast("SearchClient", node), BATCH, "big5")
    other = ask(cast("SearchClient", Paged(hits(1), hits(2, 4))), BATCH, "big5")
    assert (answer.total, answer.returned) == (18, 3)
    assert answer.top_hits != other.top_hits
    assert (bool(answer.aggregations), other.aggregations) == (True, "")
    assert [index for index, _ in node.asked] == ["big5", "other"]


def test_a_batch_with_a_search_that_fails_has_failed():
    node = Paged(hits(1), "no such index [other]")
    answer = ask(cast("SearchClient", node), BATCH, "big5")
    assert answer == Answer(failed="no such index [other]")


def test_of_a_composite_every_search_is_asked_where_it_searches():
    requests = [
        {"operation-type": "open-point-in-time", "name": "point", "index": "old"},
        {"operation-type": "search", "with-point-in-time-from": "point", "index": "x", "body": {"size": 1}},
        {
            "stream": [
                {"operation-type": "search", "index": "other"},
                {"operation-type": "sleep", "duration": 1},
            ]
        },
        {"operation-type": "composite", "requests": [{"operation-type": "search"}]},
    ]
    node = Paged(hits(1), hits(2), hits(3))
    raw = {"name": "c", "operation-type": "composite", "requests": requests}
    answer = ask(cast("SearchClient", node), decode_operation(raw), "big5")
    assert [index for index, _ in node.asked] == ["old", "other", "big5"]
    assert (answer.total, answer.returned) == (27, 3)
