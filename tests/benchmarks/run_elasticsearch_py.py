"""elasticsearch-py as a contestant."""

from elasticsearch import Elasticsearch
from jobs import Done, Job
from loops import QUERY, Send, closed_loops, do_job


def client_search(job: Job) -> Done:
    """elasticsearch-py, a client object and a thread for every client, as its users have it."""

    def prepared() -> Send:
        client = Elasticsearch(job.url)

        def send() -> None:
            client.search(index=job.index, **QUERY)

        return send

    return closed_loops(job, prepared)


if __name__ == "__main__":
    do_job({"search": client_search})
