"""Tracks in the styles of Rally and OpenSearch Benchmark, written for the tests of what loads them."""

from collections.abc import Mapping
from pathlib import Path

BOOKS: Mapping[str, str] = {
    "track.json": """{% import "rally.helpers" as rally with context %}
{% set shelf = "books" %}
{
  "version": 2,
  "description": "Books and who lent them",
  "#TODO": "more shelves",
  "indices": [
    {"name": "{{ shelf }}", "body": "index.json"},
    {"name": "loans", "body": "index.json"}
  ],
  "corpora": [
    {
      "name": "books",
      "base-url": "{{ base_url | default('http://books.invalid') }}",
      "documents": [
        {
          "target-index": "books",
          "source-file": "books.json.bz2",
          "document-count": 1000,
          "compressed-bytes": 4000,
          "uncompressed-bytes": 90000
        },
        {"target-index": "loans", "source-file": "loans.json", "document-count": 10, "#COMMENT": "by hand"}
      ]
    }
  ],
  "operations": [
    {{ rally.collect(parts="operations/*.json") }}
  ],
  "challenges": [
    {{ rally.collect(parts="challenges/*.json") }}
  ]
}
""",
    "index.json": """{
  "settings": {
    "index.number_of_shards": {{ number_of_shards | default(2) }}
    {{ rally.exists_set_param("index.codec", codec) }}
  },
  "mappings": {"properties": {"title": {"type": "text"}}}
}
""".replace("{{ rally.exists", '{% import "rally.helpers" as rally %}{{ rally.exists'),
    "operations/index.json": """{
  "name": "index-append",
  "operation-type": "bulk",
  "bulk-size": {{ bulk_size | default(500) }},
  "ingest-percentage": {{ ingest_percentage | default(100) }}
}
""",
    "operations/search.json": """{
  "name": "all",
  "operation-type": "search",
  "index": "{{ shelf }}",
  "body": {"query": {"match_all": {}}}
},
{
  "name": "old",
  "operation-type": "search",
  "index": "{{ shelf }}",
  "body": {
    "query": {"range": {"year": {"lt": {{ year | default(1900) }} }}}
  }
},
{
  "name": "by-author",
  "operation-type": "search",
  "param-source": "author-source",
  "authors": ["a", "b"]
}
""",
    "challenges/default.json": """{
  "name": "lend-and-search",
  "description": "All of it",
  "default": true,
  "schedule": [
    {{ rally.collect(parts="../shared/setup.json") }},
    {
      "operation": "index-append",
      "warmup-time-period": 30,
      "clients": {{ clients | default(4) }},
      "ignore-response-error-level": "non-fatal"
    },
    {
      "operation": "all",
      "warmup-iterations": 50,
      "iterations": 100,
      "target-throughput": {{ rate | default(20) | tojson }},
      "tags": ["fast", "search"]
    },
    {
      "name": "both",
      "parallel": {
        "time-period": 60,
        "tasks": [
          {"operation": "old", "clients": 2, "schedule": "poisson", "target-interval": 0.5},
          {"name": "all-beside", "operation": "all", "meta": {"why": "beside"}}
        ]
      }
    }
  ]
},
{
  "name": "authors",
  "schedule": [
    {"operation": "refresh"},
    {"operation": "by-author", "iterations": 10, "schedule": "by-the-clock", "grain": 5}
  ]
}
""",
    "shared/setup.json": """{"operation": "delete-index"},
{
  "operation": {
    "operation-type": "create-index",
    "settings": {{ index_settings | default({}) | tojson }}
  }
}
""",
}
"""Rally's style: several indices and challenges, parts in parts, a parameter source of a plug-in."""

SHOP: Mapping[str, str] = {
    "common/health.json": """{
  "name": "check-cluster-health",
  "operation": {
    "operation-type": "cluster-health",
    "index": "{{ index_name }}",
    "request-params": {"wait_for_status": "{{ health | default('green') }}"},
    "retry-until-success": true
  }
}
""",
    "shop/workload.json": """{% if distribution_version is not defined %}
  {% set distribution_version = "2.11.0" %}
{% endif %}
{
  "version": 2,
  "description": "What a shop sells",
  "indices": [
    {"name": "{{ index_name | default('shop') }}", "body": "{{ index_body | default('index.json') }}"}
  ],
  "corpora": [
    {
      "name": "shop",
      "base-url": "http://shop.invalid/corpora",
      "documents": [
        {% if not size %}{% set size = 10 %}{% endif %}
        {
          {% if size == 10 %}
          "source-file": "shop-10.json.zst",
          {% else %}
          "source-file": "shop-{{ size }}.json.zst",
          "source-file-parts": [
            {"name": "part0", "size": {{ first | default(7) * size }} },
            {"name": "part1", "size": {{ size * 3 }} }
          ],
          {% endif %}
          "compressed-bytes": {{ size * 10 }},
          "document-count": {{ size * 100 }},
          "uncompressed-bytes": {{ size * 1000 }}
        }
      ]
    }
  ],
  "operations": [{{ benchmark.collect(parts="operations/*.json") }}],
  "test_procedures": [{{ benchmark.collect(parts="test_procedures/*.json") }}]
}
""",
    "shop/index.json": """{
  "settings": {"index": {"number_of_shards": "3"}},
  "mappings": {"dynamic": "strict"}
}
""",
    "shop/operations/default.json": """
{%- for day in range(1, 4) %}
{"name": "day-{{ day }}", "operation-type": "search",
 "body": {"query": {"term": {"day": {{ day }} }}}},
{%- endfor %}
{
  "name": "prices",
  "operation-type": "search",
  "body": {"aggs": {"by": {"date_histogram": {"field": "at",
    {% if distribution_version.split('.') | map('int') | list >= [7] %}
    "calendar_interval": "day"
    {% else %}
    "interval": "day"
    {% endif %}
  }}}}
}
""",
    "shop/test_procedures/default.json": """{
  "name": "buy",
  "schedule": [
    {% with index_name="shop" %}{{ benchmark.collect(parts="../../common/health.json") }},{% endwith %}
    {"operation": "day-1", "iterations": {{ day_iterations or iterations | default(7) | tojson }}},
    {"operation": "prices", "clients_list": [1, 8], "iterations": 5}
  ]
}
""",
}
"""OpenSearch Benchmark's style: parts beside the workload's folder, scoped variables, its own words."""


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files by relative path.

    Returns:
        The folder.
    """
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
