"""`mercer demo`: a data set of scikit-learn, from table to model to report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import mercer as mc
from mercer.cli import fitting, predicting
from mercer.cli.destinations import require_outputs
from mercer.cli.outputs import sink
from mercer.cli.speaking import Voice
from mercer.cli.summary import importance_facts, most_important
from mercer.errors import InvalidInput
from mercer.models.provenance import provenance
from mercer.words import seconds

COLUMNS = (
    "age", "sex", "bmi", "blood_pressure", "cholesterol", "ldl", "hdl", "cholesterol_ratio", "log_triglycerides",
    "sugar", "progression",
)  # fmt: skip
PREDICTED = ("patient", "progression", "prediction", "lower", "upper")


def demo(voice: Voice, folder: str, *, force: bool = False) -> None:
    """Predict the progression of diabetes in a year from ten measurements of 442 patients (Efron et al. 2004)."""
    began = time.monotonic()
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{folder} must be a folder", got=error.strerror or str(error), advice="Choose another folder with --out."
        ) from None
    table, model, report, predictions = (
        str(place / name) for name in ("diabetes.csv", "diabetes.mercer", "diabetes.html", "diabetes_predictions.csv")
    )
    require_outputs(
        {"the table": table, "the model": model, "the report": report, "the predictions": predictions}, inputs=(),
        force=force, header={"the table": ",".join(COLUMNS), "the predictions": ",".join(PREDICTED)},
    )  # fmt: skip
    voice.say("1. A table: 442 patients, ten measurements, and the progression of diabetes after a year", strong=True)
    write_diabetes(Path(table))
    voice.say(f"   mercer fit {table} --target progression --report {report}")
    voice.say()
    voice.say("2. A model, scored on held-out rows", strong=True)
    held_out = fitting.fit(
        _Part(as_json=voice.as_json, color=voice.color, quiet=voice.quiet), table, "progression", kernel=None,
        model="auto", task="auto", out=model, report=report, budget=60.0, test_size=None, roles={},
        drop_missing_target=False, centers=None, refit=False, seed=0, reading={},
    )  # fmt: skip
    voice.say()
    voice.say("3. Predictions with 90 % intervals for the held-out patients", strong=True)
    loaded = mc.load(model)
    rows = pl.read_csv(table)[held_out]
    X = rows.select(list(provenance(loaded).columns))
    predicted = predicting.predictions(loaded, X, 0.9)
    frame = pl.DataFrame({"patient": held_out + 1, "progression": rows["progression"]} | predicted)
    with sink(predictions) as out:
        out.write(frame)
    voice.table(frame.columns, [[row[0], *map(float, row[1:])] for row in frame.head(4).rows()])
    inside = frame.filter(pl.col("progression").is_between("lower", "upper")).height
    voice.say(f"   {inside / len(held_out):.0%} of these {len(held_out)} targets are in their intervals.")
    voice.say()
    voice.say("4. Feature importance: how much the error (RMSE) rises when a column is shuffled", strong=True)
    importance = provenance(loaded).importance
    assert importance is not None  # a table of several columns has one
    voice.say(f"   {most_important(importance)}")
    spent = time.monotonic() - began
    voice.say()
    voice.say(f"Done in {seconds(spent)}. Files:", strong=True)
    paths = {"table": table, "model": model, "report": report, "predictions": predictions}
    for what, path in paths.items():
        voice.say(f"  {what:<12} {path}")
    voice.document({"command": "demo", "seconds": spent, "importance": importance_facts(importance)} | paths)


class _Part(Voice):
    """The voice of one step: the demo prints one JSON document at its end."""

    def document(self, content: dict[str, Any]) -> None:
        pass


def write_diabetes(path: Path) -> None:
    """Write the data set in its original units, with readable column names."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    columns: dict[str, Any] = dict(zip(COLUMNS, data.data.T))
    columns["age"] = columns["age"].astype(np.int64)
    columns["sex"] = np.where(columns["sex"] == 1, "a", "b")  # the data set does not document which is which
    with sink(str(path)) as out:
        out.write(pl.DataFrame(columns | {"progression": data.target.astype(np.int64)}))
