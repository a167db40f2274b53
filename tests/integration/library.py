"""Foreign tracks that real nodes run, as people write them; their documents are made here, too."""

import bz2
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

LOANS = 3_000
OVERDUE = 1_000
SHELVES = 5
READERS = 400
VISITS = 600

LIBRARY: Mapping[str, str] = {
    "track.json": """{% import "rally.helpers" as rally with context %}
{
  "version": 2,
  "description": "Books that were lent",
  "#COMMENT": "one index, one compressed file",
  "indices": [{"name": "loans", "body": "index.json"}],
  "corpora": [
    {
      "name": "loans",
      "documents": [
        {
          "source-file": "documents.json.bz2",
          "document-count": {{ count | default(DOCUMENTS) }},
          "uncompressed-bytes": RAW_BYTES
        }
      ]
    }
  ],
  "operations": [{{ rally.collect(parts="operations/*.json") }}],
  "challenges": [{{ rally.collect(parts="challenges/*.json") }}]
}
""",
    "index.json": """{
  "settings": {"index.number_of_shards": {{ number_of_shards | default(1) }}, "index.number_of_replicas": 0},
  "mappings": {
    "dynamic": "strict",
    "properties": {
      "day": {"type": "date"},
      "shelf": {"type": "{{ shelf_type | default('keyword') }}"},
      "title": {"type": "text"},
      "overdue": {"type": "boolean"}
    }
  }
}
""",
    "operations/default.json": """{
  "name": "index-append",
  "operation-type": "bulk",
  "bulk-size": {{ bulk_size | default(500) }},
  "ingest-percentage": {{ ingest_percentage | default(100) }}
},
{"name": "default", "operation-type": "search", "body": {"track_total_hits": true}},
{"name": "overdue", "operation-type": "search", "body": {"query": {"term": {"overdue": true}}}},
{
  "name": "by-shelf",
  "operation-type": "search",
  "index": "loans",
  "body": {"size": 0, "aggs": {"shelves": {"terms": {"field": "shelf"}}}}
}
""",
    "challenges/append.json": """{% import "rally.helpers" as rally %}{
  "name": "append-and-search",
  "default": true,
  "schedule": [
    {"operation": "delete-index"},
    {"operation": {"operation-type": "create-index", "settings": {"refresh_interval": "5s"}}},
    {
      "operation": {
        "operation-type": "cluster-health",
        "index": "loans",
        "request-params": {"wait_for_status": "green"},
        "retry-until-success": true
      }
    },
    {"operation": "index-append", "clients": 2, "warmup-time-period": 0},
    {"name": "refresh-after-index", "operation": "refresh"},
    {"operation": {"operation-type": "force-merge", "max-num-segments": 1}},
    {"name": "refresh-after-merge", "operation": "refresh"},
    {{ rally.collect(parts="../parts/searches.json") }},
    {
      "parallel": {
        "iterations": 5,
        "tasks": [{"operation": "overdue", "name": "overdue-beside"}, {"operation": "by-shelf", "clients": 2}]
      }
    }
  ]
}
""",
    "challenges/search.json": """{
  "name": "search-only",
  "schedule": [
    {"operation": "default", "iterations": 5},
    {"operation": "overdue", "iterations": 5},
    {"operation": "by-shelf", "iterations": 5}
  ]
}
""",
    "parts/searches.json": """{
  "operation": "default", "warmup-iterations": 2, "iterations": {{ search_iterations | default(5) }}
},
{"operation": "overdue", "iterations": 5, "target-throughput": 50}
""",
}
"""Rally's style: challenges and operations in parts, an index that is a template, one bzip2 file."""

HOUSE: Mapping[str, str] = {
    "workload.json": """{% import "benchmark.helpers" as benchmark with context %}
{
  "version": 2,
  "description": "Who reads, and who comes",
  "indices": [{"name": "readers", "body": "readers.json"}, {"name": "fines", "body": "readers.json"}],
  "composable-templates": [
    {"name": "visits", "index-pattern": "visits-*", "template": "visits.json", "template-path": "inner"}
  ],
  "corpora": [
    {
      "name": "people",
      "documents": [
        {"target-index": "readers", "source-file": "readers.ndjson", "document-count": READERS},
        {"target-index": "fines", "source-file": "fines.ndjson", "document-count": READERS}
      ]
    },
    {
      "name": "visits",
      "documents": [
        {
          "source-file": "visits.json.bz2",
          "document-count": VISITS,
          "includes-action-and-meta-data": true
        }
      ]
    }
  ],
  "operations": [
    {"name": "send-people", "operation-type": "bulk", "bulk-size": 100, "corpora": "people"},
    {"name": "send-visits", "operation-type": "bulk", "bulk-size": 100, "corpora": ["visits"]},
    {"name": "readers", "operation-type": "search", "index": "readers,fines", "body": {"size": 1}},
    {
      "name": "visits",
      "operation-type": "search",
      "data-stream": "visits-2024",
      "body": {"size": 1, "query": {"term": {"door": "north"}}, "sort": [{"@timestamp": "asc"}]}
    },
    {"name": "everything", "operation-type": "search", "index": "_all", "body": {"track_total_hits": true}}
  ],
  "test_procedures": [
    {
      "name": "open",
      "schedule": [
        {"operation": "delete-index"},
        {"operation": {"operation-type": "delete-data-stream", "data-stream": "visits-2024"}},
        {"operation": "create-index"},
        {"operation": {"operation-type": "create-composable-template"}},
        {"operation": {"operation-type": "create-data-stream", "data-stream": "visits-2024"}},
        {"operation": "send-people", "clients": 2},
        {"operation": "send-visits"},
        {"operation": "refresh"},
        {"operation": "readers", "iterations": 3},
        {"operation": "visits", "iterations": 3},
        {"operation": "everything", "iterations": 3}
      ]
    }
  ]
}
""",
    "readers.json": """{
  "settings": {"number_of_shards": 1, "number_of_replicas": 0},
  "mappings": {"properties": {"name": {"type": "keyword"}}}
}
""",
    "visits.json": """{
  "inner": {
    "index_patterns": ["visits-*"],
    "data_stream": {},
    "template": {
      "settings": {"index": {"number_of_shards": 1, "number_of_replicas": 0}},
      "mappings": {"dynamic": "strict", "properties": {"door": {"type": "keyword"}}}
    }
  }
}
""",
}
"""OpenSearch Benchmark's style: two indices, and a data stream that the schedule makes from a template."""

DOORS: Mapping[str, str] = {
    "track.json": """{
  "version": 2,
  "data-streams": [{"name": "visits-2024"}],
  "component-templates": [{"name": "small", "template": "small.json"}],
  "composable-templates": [{"name": "visits", "index-pattern": "visits-*", "template": "visits.json"}],
  "corpora": [
    {"name": "visits", "documents": [{"source-file": "visits.json.bz2", "document-count": VISITS}]}
  ],
  "challenges": [
    {
      "name": "ask",
      "schedule": [
        {"operation": {"name": "all", "operation-type": "search", "body": {"track_total_hits": true}},
         "iterations": 3},
        {"operation": {"name": "north", "operation-type": "search", "data-stream": "visits-2024",
                       "body": {"query": {"term": {"door": "north"}}}}, "iterations": 3}
      ]
    }
  ]
}
""",
    "small.json": """{
  "template": {"settings": {"index.number_of_shards": 1, "index.number_of_replicas": 0}}
}
""",
    "visits.json": """{
  "index_patterns": ["visits-*"],
  "data_stream": {},
  "composed_of": ["small"],
  "template": {"mappings": {"properties": {"door": {"type": "keyword"}}}}
}
""",
}
"""Rally's style with nothing but a data stream, which its only challenge asks."""


def write_library(folder: Path) -> Path:
    """The track of loans with its documents."""
    loans = [
        {
            "day": f"2024-{1 + number % 12:02d}-01",
            "shelf": f"s{number % SHELVES}",
            "title": f"book {number}",
            "overdue": number < OVERDUE,
        }
        for number in range(LOANS)
    ]
    text = _lines(loans)
    _write(folder, LIBRARY, DOCUMENTS=LOANS, RAW_BYTES=len(text))
    (folder / "documents.json.bz2").write_bytes(bz2.compress(text))
    return folder


def write_house(folder: Path) -> Path:
    """The workload of readers and visits with its documents."""
    _write(folder, HOUSE, READERS=READERS, VISITS=VISITS)
    for name in ("readers", "fines"):
        (folder / f"{name}.ndjson").write_bytes(
            _lines({"name": f"{name}-{number}"} for number in range(READERS))
        )
    action = {"create": {"_index": "visits-2024"}}
    pairs = [line for visit in visits() for line in (action, visit)]
    (folder / "visits.json.bz2").write_bytes(bz2.compress(_lines(pairs)))
    return folder


def write_doors(folder: Path) -> Path:
    """The track of a data stream with its documents."""
    _write(folder, DOORS, VISITS=VISITS)
    (folder / "visits.json.bz2").write_bytes(bz2.compress(_lines(visits())))
    return folder


def visits() -> list[dict[str, Any]]:
    """Who came through which door; every third through the one in the north."""
    return [
        {"@timestamp": 1_704_067_200_000 + 60_000 * number, "door": "north" if number % 3 == 0 else "south"}
        for number in range(VISITS)
    ]


def _lines(documents: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in documents).encode()


def _write(folder: Path, files: Mapping[str, str], **numbers: int) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for word, number in numbers.items():
            text = text.replace(f": {word}", f": {number}").replace(f"({word})", f"({number})")  # noqa: PLW2901
        path.write_text(text, encoding="utf-8")
