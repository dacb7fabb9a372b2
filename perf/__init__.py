"""Benchmarks and a profiler. Each script runs alone, and compares with other libraries where they are installed."""
