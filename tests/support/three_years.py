"""A suite of many nights on disk, made up: what reading and showing years of history is tried on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchctl.nightly.folder import FIGURES_NAME, SuiteFolder, copy_figures
from benchctl.nightly.model import NIGHT_VERSION, NightRecord, NightVariant
from benchctl.results.plan import VariantSpec
from benchctl.results.samples import database

FIRST = datetime(2024, 2, 25, 3, 0, tzinfo=UTC)
BETWEEN_NIGHTS = 0.015
"""Standard deviation of logarithms from night to night; half of it among the forks of a night."""


def make_store(
    folder: Path, nights: int = 1000, tasks: int = 40, variants: int = 2, forks: int = 5, seed: int = 1
) -> SuiteFolder:
    """Fill a folder of a suite: variant 0 is watched, the last one is the canary when there are several.

    Every task has throughput and p90 service time. A tenth of the watched series step by 10% somewhere.
    """
    suite = SuiteFolder(folder)
    suite.nights_folder.mkdir(parents=True, exist_ok=True)
    records = [_record(folder.name, number, variants, forks) for number in range(1, nights + 1)]
    for record in records:
        suite.night_path(record.id).mkdir()
        suite.save(record)
    with database() as connection:
        numbers = np.arange(1, nights + 1)
        grid = {
            name: part.ravel()
            for name, part in zip(
                ("night", "variant_no", "task_no", "fork"),
                np.meshgrid(numbers, np.arange(variants), np.arange(tasks), np.arange(forks), indexing="ij"),
                strict=True,
            )
        }
        connection.register("grid", grid | {"log_s": _logs(nights, tasks, variants, forks, seed).ravel()})
        connection.execute(
            "CREATE TABLE ids AS SELECT unnest(?::BIGINT[]) AS night, unnest(?::VARCHAR[]) AS night_id, "
            "unnest(?::VARCHAR[]) AS run, unnest(?::VARCHAR[]) AS started",
            [
                list(range(1, nights + 1)),
                [record.id for record in records],
                [record.run for record in records],
                [record.started for record in records],
            ],
        )
        connection.execute(
            """
            CREATE TABLE figures AS
            SELECT night::BIGINT AS night, night_id, run, started,
              CASE WHEN variant_no > 0 AND variant_no = (SELECT max(variant_no) FROM grid)
                THEN 'canary' ELSE 'es' || CASE variant_no WHEN 0 THEN '' ELSE variant_no::VARCHAR END
                END AS variant,
              '8.11.' || (night // 60) AS version, 'big5' AS challenge,
              'task-' || lpad(task_no::VARCHAR, 2, '0') AS task, metric, unit, higher_is_better,
              fork::BIGINT AS fork,
              CASE metric WHEN 'throughput' THEN exp(-log_s) ELSE 1000 * exp(log_s) END AS value,
              1000::BIGINT AS samples, false AS disturbed
            FROM grid JOIN ids USING (night), (VALUES ('throughput', 'queries/s', true),
              ('service_time_p90', 'ms', false)) AS metrics(metric, unit, higher_is_better)
            ORDER BY night, variant_no, task_no, metric, fork
            """
        )
        for record in records:
            source = f"(FROM figures WHERE night = {record.number})"
            copy_figures(connection, source, suite.night_path(record.id) / FIGURES_NAME)
    return suite


def _logs(
    nights: int, tasks: int, variants: int, forks: int, seed: int
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Natural logarithms of seconds, shape (nights, variants, tasks, forks)."""
    rng = np.random.default_rng(seed)
    usual = rng.uniform(np.log(0.001), np.log(0.1), (1, variants, tasks, 1))
    drawn = rng.normal(0, BETWEEN_NIGHTS, (nights, variants, tasks, 1))
    drawn = drawn + rng.normal(0, BETWEEN_NIGHTS / 2, (nights, variants, tasks, forks))
    for task in range(0, tasks, 10):
        drawn[int(rng.integers(nights // 4, max(nights // 2, nights // 4 + 1))) :, 0, task] += np.log(1.1)
    return usual + drawn


def _record(suite: str, number: int, variants: int, forks: int) -> NightRecord:
    at = FIRST + timedelta(days=number - 1)
    labels = ["es"] + [f"es{place}" for place in range(1, variants - 1)] + ["canary"] * (variants > 1)
    night_id = f"{number:05d}-{at:%Y%m%d-%H%M}"
    run = f"{at:%Y%m%d-%H%M%S}-big5-{number:04x}"
    return NightRecord(
        night_version=NIGHT_VERSION,
        id=night_id,
        number=number,
        suite=suite,
        started=at.isoformat(),
        status="done",
        era="e",
        variants=tuple(
            NightVariant(
                label=label,
                role="canary" if label == "canary" else "watched",
                asked="es@8.11.0" if label == "canary" else "es@latest",
                spec=VariantSpec(name=label, engine="elasticsearch", version=f"8.11.{number // 60}"),
            )
            for label in labels
        ),
        run=run,
        runs=(run,),
        forks_planned=forks,
        forks_done=forks,
        wall_s=3600.0,
        budget_s=7200.0,
    )
