"""benchctl: is Elasticsearch or OpenSearch faster at this, by how much, and how sure are we?"""

__version__ = "0.1.0"
