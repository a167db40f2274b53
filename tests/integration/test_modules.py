"""OpenSearch with the module that plug-ins extend, from published jars, on a node."""

from benchctl.engine.distribution import Installation
from benchctl.engine.equipment import with_painless
from benchctl.engine.launch import starts_of
from benchctl.home import Home
from benchctl.results.plan import EngineName
from integration.conftest import Start


def test_a_module_does_its_work(home: Home, installations: dict[EngineName, Installation], start: Start):
    plain = installations["opensearch"]
    installation = with_painless(home, plain, lambda *_: None)
    assert installation.modules == ("lang-painless", "transport-netty4")
    with start("opensearch", installation=installation, starts=starts_of(home, installation)) as node:
        request = node.client.request
        (info,) = request("GET", "/_nodes/_local/plugins")["nodes"].values()
        assert {module["name"] for module in info["modules"]} == set(installation.modules)
        request("PUT", "/tiny/_doc/1", params={"refresh": "true"}, body={"size": 3})
        script = {"source": "doc['size'].value * params.factor", "params": {"factor": 2}}
        fields = {"script_fields": {"double": {"script": script}}}
        assert request("POST", "/tiny/_search", body=fields)["hits"]["hits"][0]["fields"] == {"double": [6]}
