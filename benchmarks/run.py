"""Run all benchmarks, one after the other, and keep their results: `make bench`.

    python benchmarks/run.py                    # what has no result yet; interrupt it and call it again to go on
    python benchmarks/run.py --again            # everything anew
    python benchmarks/run.py svm graphs         # jobs whose name contains one of these words
    python benchmarks/run.py --list             # the jobs, and when each was measured
    python benchmarks/run.py --quick            # small sizes: does everything run? Results go to out/bench-quick
    python benchmarks/run.py --busy             # on a busy machine: one thread each, and its processor time counts
    python benchmarks/run.py --data DIR         # also the jobs that need data sets (or set MERCER_DATA)

A job is one script in a process of its own. Its result is a JSON file in benchmarks/results with machine, versions and
date; the page "Benchmarks" of the documentation is made from these files. What a script prints goes to out/bench.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import results

TOP = Path(__file__).resolve().parent.parent
JOBS = {
    "gram-dense": "gram.py --only dense",
    "gram-product": "gram.py --only product",
    "gram-first": "gram.py --only first",
    **{f"ridge-{n}": f"ridge.py --only {n}" for n in (2000, 5000, 10000, 15000)},
    "nystrom": "nystrom.py",
    **{f"tuning-{name}": f"tuning.py --only {name}" for name in ("ridge", "evidence-one", "evidence-5", "evidence-20")},
    "svm": "svm.py --only =",
    "svm-grid": "svm.py --only grid",
    **{f"smoothing-{name}": f"smoothing.py --only {name}"
       for name in ("regression", "large", "narrow", "loo", "density", "grid")},
    **{f"glm-{name}": f"glm.py --only {name}" for name in ("primal", "exact", "nystrom")},
    "perceptron-stream": "perceptron.py --only stream",
    "perceptron-pass": "perceptron.py --only pass",
    "kernel-pca": "kernel_pca.py",
    "strings": "strings.py",
    "graphs-paths": "graphs.py --only ShortestPath",
    "graphs-labels": "graphs.py --only WeisfeilerLehman(",
    "graphs-assignment": "graphs.py --only Assignment",
    "series": "series.py",
    "fingerprints": "fingerprints.py",
    "fourier": "fourier.py",
    "scale": "scale.py",
    "batches": "batches.py",
    "refinement": "refinement.py",
    "full-kernel": "full_kernel.py",
    "dask": "dask_cluster.py",
    "relevance": "relevance.py",
}  # fmt: skip
"""Scripts with their options, by the name of the result."""
WITH_DATA = {
    **{f"svm-{name}": f"svm.py --only {name}" for name in ("letter", "shuttle", "mnist")},
    "svm-objectives": "svm_objectives.py",
    "tables": "tables.py",
    "automatic": "auto.py",
    "gaussian-processes": "uci.py",
    "accuracy-strings": "string_accuracy.py",
    "accuracy-graphs": "graph_accuracy.py MUTAG PTC_MR ENZYMES PROTEINS NCI1",
    "accuracy-series": "series_accuracy.py",
    "accuracy-images": "image_accuracy.py",
    "accuracy-molecules": "molecule_accuracy.py",
    "promises": "promises.py",
    "time-limits": "budget.py",
    "large-examples": "large_examples.py",
}
"""Scripts that need the folder of data sets."""
ONE_THREAD = ("OMP", "OPENBLAS", "MKL", "NUMBA", "MERCER")


def run(name: str, command: list[str], folder: Path, busy: bool) -> bool:
    """Run one job; the result appears in the folder when the script has ended without an error."""
    part, log = folder / f"{name}.part", TOP / "out/bench" / f"{name}.txt"
    for path in (part, log):
        path.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, results.RECORD: str(part)}
    if busy:
        environment |= {results.BUSY: "1", **{f"{name}_NUM_THREADS": "1" for name in ONE_THREAD}}
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        code = subprocess.run(
            [sys.executable, "-W", "ignore", *command], stdout=file, stderr=subprocess.STDOUT, cwd=TOP, env=environment
        ).returncode
    if code or not part.exists():
        part.unlink(missing_ok=True)
        last = (log.read_text(encoding="utf-8").splitlines() or ["no output"])[-1]
        print(f" failed with code {code}: {last}. See {log.relative_to(TOP)}.", flush=True)
        return False
    record = json.loads(part.read_text(encoding="utf-8"))
    options = ["DIR" if before == "--data" else word for before, word in pairwise(command)]  # results name no folder
    record |= {"command": f"python {Path(command[0]).relative_to(TOP)} {' '.join(options)}".strip(),
               "seconds": round(time.perf_counter() - start)}  # fmt: skip
    if not record["tables"]:
        record["text"] = log.read_text(encoding="utf-8")
    part.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(folder / f"{name}.json")
    print(f" {record['seconds']} s", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only jobs whose name contains one of these")
    parser.add_argument("--again", action="store_true", help="also jobs that have a result")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--busy", action="store_true", help="count the processor time of one thread")
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder with data sets")
    parser.add_argument("--list", action="store_true", help="show the jobs and their results")
    options = parser.parse_args()
    folder = TOP / "out/bench-quick" if options.quick else results.FOLDER
    jobs = {**JOBS, **WITH_DATA}
    chosen = {name: words for name, words in jobs.items()
              if not options.words or any(word in name for word in options.words)}  # fmt: skip
    if not chosen:
        parser.error(f"no job has a name with {' or '.join(options.words)}; --list shows all")
    done = results.read(folder)
    if options.list:
        for name in chosen:
            print(f"{name:20} {done[name]['date'] if name in done else 'no result':10}  {jobs[name]}")
        return 0
    failed = 0
    for number, (name, words) in enumerate(chosen.items(), start=1):
        head = f"[{number}/{len(chosen)}] {name:20}"
        if name in done and not options.again:
            print(f"{head} has a result of {done[name]['date']}", flush=True)
        elif name in WITH_DATA and (options.quick or not options.data):
            print(f"{head} left out: it needs data sets{'' if options.quick else ' (--data DIR)'}", flush=True)
        else:
            before = f" ({done[name]['seconds']} s last time)" if name in done else ""
            print(f"{head} …{before}", end="", flush=True)
            script, *rest = words.split()
            rest += ["--data", options.data] if name in WITH_DATA else ["--quick"] if options.quick else []
            failed += not run(name, [str(TOP / "benchmarks" / script), *rest], folder, options.busy)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
