"""Faults on purpose: killed processes, damaged files, full disks and fuzzed readers, and what became of each."""
