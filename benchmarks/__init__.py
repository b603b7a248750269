"""One question per file: ``python -m benchmarks.bench_import`` runs one, ``make bench`` all."""
